"""The command line: one file for each verb, no logic."""

from sparkmirror.cli.app import main

__all__ = ["main"]
