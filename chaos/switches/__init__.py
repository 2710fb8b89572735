"""Real migrations under load, with the tool killed and stragglers planted, and what became of the records."""
