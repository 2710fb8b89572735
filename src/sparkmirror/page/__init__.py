"""Live page of a running mirror, for browsers.

`summary` puts together what each viewer gets. Start with `sentences`.
"""
