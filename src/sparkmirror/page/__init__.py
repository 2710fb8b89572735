"""Live page of a running mirror, for browsers."""
