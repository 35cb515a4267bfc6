"""The world a pipeline runs in: `processes` (real servers as child processes of ours)."""
