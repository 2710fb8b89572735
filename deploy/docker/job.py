"""sparkmirror for a Spark that takes only a file to run, with the verb behind it: local:///opt/sparkmirror/job.py."""

from sparkmirror.cli import main

main()
