"""The list of what is measured: each file has one item, a function that yields its readings."""
