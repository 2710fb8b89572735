"""Real clusters and a mirror between them, broken in many ways under load, and what became of the records."""
