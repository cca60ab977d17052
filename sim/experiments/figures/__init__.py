"""The figures and tables of the evaluation, a file each; ``registry`` names them."""
