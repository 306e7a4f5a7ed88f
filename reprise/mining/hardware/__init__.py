"""Hardware specifications to facts ``hw(target, key, value)`` and resource constraints.

A *format* is data: ``extractors/hardware/NAME.toml`` says what a specification's words mean, and
``grammars/hardware/*.lark`` how it is written. See ``docs/mining-hardware.md``.
"""
