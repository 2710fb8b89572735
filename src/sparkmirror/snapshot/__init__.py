"""A mirror's state at one moment."""
