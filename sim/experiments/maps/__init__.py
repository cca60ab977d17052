"""Maps: what claims make of many settings, and of the setting nearest to the paper."""
