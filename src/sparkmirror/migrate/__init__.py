"""Parts of a migration: atomic sets of topics and groups, and rehearsals of moves."""
