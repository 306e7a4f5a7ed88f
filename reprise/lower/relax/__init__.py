"""UIR to TVM Relax: Python source that builds the program with ``relax.BlockBuilder``.

``source`` writes the text and ``limits`` says what TVM has no form for; the forms of the operators
are tables, a module a family: ``elementwise``, …. The source imports only TVM and numpy, and reads
as a person would write it; TVM 0.25 to 0.27 run it.
"""

from __future__ import annotations

from reprise.lower.lowering import Lowering
from reprise.lower.relax.lowering import RelaxLowering

LOWERING: Lowering = RelaxLowering()
