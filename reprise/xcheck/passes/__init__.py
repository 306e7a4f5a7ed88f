"""How far a compiler gets with a model: the passes it completes, without running anything."""
