"""``compare``: every system on one model, cluster and data."""
