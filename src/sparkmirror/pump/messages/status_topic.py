"""Name of a flow's status topic.

`snapshot.status_topic` writes and reads the topic.
"""


def status_topic(source_alias: str) -> str:
    """Return the topic's name, with an ending that MirrorMaker 2 never mirrors.

    See "Internal topics" in docs/design.md.
    """
    return f"mm2-sparkmirror-status.{source_alias}.internal"
