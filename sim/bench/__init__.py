"""The bench: measures figures of the design against their targets."""
