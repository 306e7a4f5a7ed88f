"""What keeps a checkout from being instrumented at all."""

from __future__ import annotations


class InstrumentError(Exception):
    """The checkout, the copy's place or an option is no good; the message is for people."""
