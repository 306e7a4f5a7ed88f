"""What was measured about Reprise: scripts whose tables are in `docs/results.md`."""
