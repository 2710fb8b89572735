"""Generator of `docs/migration-1.json` from the models of a migration's file.

`python -m tools.migration_schema > docs/migration-1.json` writes the schema.
"""

from __future__ import annotations

import json

from sparkmirror.migrate.file import json_schema


def text() -> str:
    """Return the whole schema, indented."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(text(), end="")
