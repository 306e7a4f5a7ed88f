"""Sparse einsum kernels: valid by rules, mutated by sound relations, run by sparse compilers."""
