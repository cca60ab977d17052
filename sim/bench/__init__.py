"""The bench: figures of DESIGN section 7, each measured beside its target."""
