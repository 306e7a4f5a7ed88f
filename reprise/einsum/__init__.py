"""Sparse einsum kernels: valid by rules, mutated by sound relations, run by sparse compilers.

``kernel`` holds the types; ``text``, ``json_form`` and ``tensure`` read and write them; ``data``
and ``reference`` say what they hold and compute; ``validity`` and ``check`` what is wrong with
them; ``generate`` makes them (``sampler``, ``grow``) and ``relations`` varies them.
"""
