"""Static timing analysis of the netlists that Yosys maps for UltraScale+."""
