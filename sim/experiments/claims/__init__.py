"""The claims of the paper, each with the function that judges it."""
