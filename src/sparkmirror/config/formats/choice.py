"""Several files' format, and mistakes for another format's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkmirror.config.formats.files import File, FileKind, files_below, open_file
from sparkmirror.config.formats.fill import Filling
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes

_OF = {
    "connectors": (FileKind.CONNECTORS, FileKind.WORKER),
    "strimzi": (FileKind.RESOURCE, FileKind.KUBERNETES),
    "properties": (FileKind.MM2,),
}
_STRANGERS = (FileKind.CONNECTORS, FileKind.RESOURCE, FileKind.MM2)
"""File kinds that tell by themselves what to mirror.

Such a file next to another format is never ignored.
"""

_KNOWN = "connectors' files, a KafkaMirrorMaker2, or mm2.properties"


@dataclass(frozen=True, slots=True)
class _Unreadable:
    path: str
    error: ConfigError


def open_files(paths: Sequence[str], filling: Filling | None) -> tuple[str, list[File], Mistakes]:
    """Return the format, its files, and the mistakes in all other files.

    In a directory, files in unknown formats are ignored; given as a path itself, such a file is a mistake. Raise
    `ConfigError` if nothing can be read.
    """
    named = set(paths)
    files: list[File] = []
    unreadable: list[_Unreadable] = []
    for path in dict.fromkeys(path for each in paths for path in files_below(each)):
        try:
            files.append(open_file(path, filling.of(path) if filling else None))
        except ConfigError as error:
            unreadable.append(_Unreadable(path, error))
    if filling is not None:
        filling.stop()
    form = form_of(files, unreadable)
    wrong = Mistakes()
    for failure in unreadable:
        if failure.path in named or _concerns(form, failure.path):
            wrong.add(failure.error)
    ours: list[File] = []
    for file in files:
        if _is_of(form, file) or len(files) == 1:
            ours.append(file)
        elif file.path in named or file.kind in _STRANGERS:
            other = next((candidate for kind in _OF[form] for candidate in files if candidate.kind is kind), None)
            too = f", and {other.path} is {other.kind.value}: give one format at a time" if other else ""
            wrong.add(ConfigError(f"is {file.kind.value}{too}", origin=file.path))
    for file in ours[1:] if form == "properties" else ():
        reason = f"is a second file of MirrorMaker 2's own, next to {ours[0].path}: give one file"
        wrong.add(ConfigError(reason, origin=file.path))
    if not ours:
        wrong.stop()
        raise ConfigError(f"holds no file that says what to mirror: {_KNOWN}", origin=paths[0])
    return form, ours, wrong


def form_of(files: Sequence[File], unreadable: Sequence[_Unreadable] = ()) -> str:
    """Return the files' format.

    If none can be read, their names tell it.
    """
    kinds = {file.kind for file in files}
    for kind, form in (
        (FileKind.CONNECTORS, "connectors"),
        (FileKind.RESOURCE, "strimzi"),
        (FileKind.MM2, "properties"),
        (FileKind.WORKER, "connectors"),
        (FileKind.KUBERNETES, "strimzi"),
    ):
        if kind in kinds:
            return form
    paths = [file.path for file in files] or [failure.path for failure in unreadable]
    return "connectors" if any(path.endswith(".json") for path in paths) else "properties"


def _concerns(form: str, path: str) -> bool:
    """True if a file that can't be read could have had the format."""
    suffixes = {
        "connectors": (".json", ".properties"),
        "strimzi": (".yaml", ".yml", ".json"),
        "properties": (".properties",),
    }
    return path.lower().endswith(suffixes[form])


def _is_of(form: str, file: File) -> bool:
    # A file of unknown kind counts as a connector's: then its missing class is the mistake.
    return file.kind in _OF[form] or (form == "connectors" and file.kind is FileKind.OTHER)
