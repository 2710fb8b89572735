"""`sparkmirror pack`: an archive for Spark workers without sparkmirror."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.errors import ConfigError


def pack(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write, such as sparkmirror.tar.gz.")],
    output: Output = Format.TEXT,
) -> None:
    """Pack sparkmirror and its libraries for workers of the same Python version.

    Prints how to ship the archive.

    Exit codes: 0 written, 2 the archive can't be written.

    Example: sparkmirror pack sparkmirror.tar.gz
    """
    from sparkmirror.mirror.engine.pack import python_minor, settings_for, write_pack

    if not file.parent.is_dir():
        raise ConfigError("there is no such directory", origin=str(file.parent))
    try:
        count = write_pack(file)
    except OSError as error:
        raise ConfigError(f"can't be written: {error.strerror}", origin=str(file)) from None
    if output is Format.JSON:
        print_json(
            {
                "file": str(file),
                "files": count,
                "bytes": file.stat().st_size,
                "python": python_minor(),
                "settings": settings_for(file),
            }
        )
        return
    typer.echo(f"{file}: {count} files, {file.stat().st_size / 1e6:.0f} MB. Ship it with")
    for key, value in settings_for(file).items():
        typer.echo(f"  --spark {key}={value}")
    typer.echo(
        f"Workers bring Spark and Python {python_minor()}; where python3 is another one there, add"
        f" --spark spark.pyspark.python=python{python_minor()}"
    )
