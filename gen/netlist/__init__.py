"""Netlists that Yosys maps for UltraScale+, and the resources and logic depth of their blocks."""
