"""Signatures that documentation leaves open, completed by asking what ONNX accepts."""
