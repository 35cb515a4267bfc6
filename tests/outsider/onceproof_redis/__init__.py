"""Redis for Onceproof: a component, a sink, a fault on it, a trigger and a workload, known by entry points alone."""
