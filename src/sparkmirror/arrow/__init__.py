"""Arrow's columns and whole record batches, turned into each other."""
