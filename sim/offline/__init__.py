"""Commands that run no NIC: plan, hit rates, batching, descriptions of data sets."""
