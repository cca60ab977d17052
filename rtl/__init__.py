"""Hardware of EmberNIC: Amaranth components, imported folder by folder."""
