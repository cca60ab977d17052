"""The page of results: every workload, cluster and mini-batch, with the changes of every system."""
