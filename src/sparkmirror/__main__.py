"""`python -m sparkmirror`: the same as `sparkmirror`."""

from sparkmirror.cli.app import main

main()
