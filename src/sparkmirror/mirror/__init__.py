"""A mirror at work: driver, duties and takeovers."""
