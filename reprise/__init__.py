"""Reprise: finds bugs in deep-learning compilers and does not find the same bug twice."""

__version__ = "0.1.0"
