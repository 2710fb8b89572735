"""The name of the topic in which a flow's status is published; `engine.status_topic` writes and reads it."""


def status_topic(source_alias: str) -> str:
    """Its name ends so that no MirrorMaker 2 mirrors it."""
    return f"mm2-sparkmirror-status.{source_alias}.internal"
