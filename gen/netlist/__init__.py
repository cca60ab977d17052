"""Netlists that Yosys maps for UltraScale+, with the resources and logic depth of their blocks."""
