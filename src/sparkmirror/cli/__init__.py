"""The command line: the verbs, most in a file of their own, without logic."""

from sparkmirror.cli.app import main

__all__ = ["main"]
