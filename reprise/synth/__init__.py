"""The generator: Algorithm 1 of the first paper, driven by the incremental engine."""
