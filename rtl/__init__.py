"""Hardware of EmberNIC: Amaranth components, one folder per area."""
