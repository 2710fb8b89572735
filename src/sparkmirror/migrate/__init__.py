"""Migrations between two clusters, from one file and what both show."""
