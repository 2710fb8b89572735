"""Makers of pages that show the code: settings, lint rules, Strimzi's fields, doctor's rules."""
