"""Models that violate one constraint at a time, and what a compiler does with them.

The second paper's Algorithm 1: which constraint to violate next, a model that violates it and
keeps the rest, how far the compiler got with it; and runs partitioned by their behaviour.
"""
