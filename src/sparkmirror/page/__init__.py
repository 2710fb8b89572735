"""The live page: what is going on, in a browser."""
