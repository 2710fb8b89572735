"""Migrations: plan, check, rehearse, switch and reverse, from one file and what both clusters show."""
