"""Public designs whose timing others measured with Vivado, and what our estimate says of them."""
