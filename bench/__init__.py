"""Measure sparkmirror against the real MirrorMaker 2, on this machine: `python -m bench --help`."""
