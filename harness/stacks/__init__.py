"""Where a pipeline runs: child processes, containers, or a cluster that is there already."""
