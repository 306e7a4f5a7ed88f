"""Kernels as Python that computes them with a compiler or a library: one module for each."""
