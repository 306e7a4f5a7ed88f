"""Constraints and signatures from ONNX's operator documentation.

``reading`` reads documents with the grammars in ``grammars/onnx_*.lark`` into ``model``'s entries;
``constraints`` and ``signatures`` write rules from them; ``agreement`` holds them against
``onnx.defs``; ``generate`` makes the documents that the ``onnx`` wheel does not hold.
"""
