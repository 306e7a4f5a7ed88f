"""Fuzzing runs: the loop, its store, redundancy metrics, reports and comparisons."""
