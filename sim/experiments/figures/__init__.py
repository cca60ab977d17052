"""The figures and tables of the evaluation, one module each; ``registry`` lists them."""
