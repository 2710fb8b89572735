"""A running mirror's live page, for browsers.

`summary` puts together what each viewer gets. Start with `sentences`.
"""
