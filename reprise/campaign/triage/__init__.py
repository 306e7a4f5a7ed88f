"""From a run's findings to bug reports: what is new first, what it is near to, and what to file."""
