"""Monitors put into a copy of a compiler's sources: rule files and a checkout come in, a copy with
inserted lines goes out, and records of what the monitors saw when the copy ran are read back."""
