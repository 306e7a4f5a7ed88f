"""Constraints from what others wrote: operator documentation, hardware specifications, compilers.

``docs`` reads ONNX's operator documentation, ``hardware`` specifications of devices, ``source`` a
compiler's sources; each writes ``.rules``. ``instrument`` puts monitors into a copy of a compiler.
What to look for is data: ``grammars/``, ``extractors/`` and ``rules/mining/``.
"""
