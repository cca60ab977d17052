"""Points of the evaluation: one system on one workload, and how it is measured."""
