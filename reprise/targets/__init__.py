"""Compilers under test. Each is one file that runs in a process of its own, in whatever
interpreter has that compiler; ``interface`` is what passes between it and the campaign."""
