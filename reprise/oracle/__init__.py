"""Judging what a target did: comparison of outputs, crash signatures, verdicts."""
