"""Points of the evaluation: a system on a workload, and its measurement."""
