"""Generator of `docs/strimzi.md` from the table of fields.

`python -m sparkmirror.formats.strimzi_page > docs/strimzi.md` writes the page anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.formats.strimzi_fields import FIELDS, OPERATED
from sparkmirror.formats.strimzi_security import OAUTH_IDLE, OF_TYPES

STATUS = (
    ("conditions", "`Ready` or `NotReady`, with the reason; a partition that can't be copied makes it `NotReady`."),
    ("observedGeneration", "`metadata.generation` of the file."),
    ("connectors", "As Connect's status has them: name, state, tasks, and why something failed as `trace`."),
    ("connectorPlugins", "MirrorMaker 2's three classes, with sparkmirror's version."),
    ("replicas", "1 while it runs, else 0."),
    (
        "labelSelector",
        "`strimzi.io/cluster=<name>,strimzi.io/name=<name>-mirrormaker2,strimzi.io/kind=KafkaMirrorMaker2`.",
    ),
    ("url", "Not written: `sparkmirror run` has no REST interface; the operator writes it."),
    ("autoRestartStatuses", "Not written: nothing is restarted."),
)


_HEAD = """\
# Strimzi's resources

```
sparkmirror run mirror.yaml --secrets /mnt/secrets --status-file status.yaml
```

runs a `KafkaMirrorMaker2` of `kafka.strimzi.io/v1` or `v1beta2` as it is; several in one file, too. All verbs take
such a file, `sparkmirror config` and `sparkmirror lint` among them. On Kubernetes an operator runs the resources
themselves ([operator.md](deploy/operator.md)).

It may be YAML or JSON, and what `kubectl get kmm2 -o yaml` or `-o json` prints, with `kind: List`; a directory stands
for all such files in it. Other kinds beside it are passed over, but Secrets and ConfigMaps.

It is read as the operator reads it: first into the configuration of Connect's workers and connectors, then into the
keys of an mm2.properties file. So everything in [configuration.md](configuration.md) holds, with the same names.
`sparkmirror convert mirror.yaml --to properties` prints those keys ([convert.md](convert.md)).

The file, or each of a directory, is watched (every two seconds, through links, as Kubernetes mounts a ConfigMap): a
change that can be run is taken over by the running mirror, flows that stay the same go on, and a line (`file-changed`)
says which flows and keys differ. One that can't be run is refused in one line (`file-not-taken`), and what ran goes on.
`spark.*` settings count from the next start on.

## Secrets

`--secrets DIR`, or the environment variable `SPARKMIRROR_SECRETS`, names a directory with

- `DIR/<name>/<key>`: Secrets as Kubernetes mounts them. They become references: each process reads them when it
  connects, Spark's workers too, so mount them there as well. Nothing secret travels, and renewed ones count from
  the next connection.
- `DIR/*.yaml`: manifests of Secrets and ConfigMaps. They may also stand in the file of the resource itself. Their
  values are taken when the run starts; on a Spark cluster they travel, so Spark's encryption must be on.

`lint`, `config` and `convert` do without Secrets that are not there: each one is named by a warning, and its values are
not known. All other verbs stop, and name all of them at once. A resource of v1beta2 becomes one of v1 without any.

In values, `${strimzisecrets:<namespace>/<name>:<key>}` and `${strimziconfigmaps:…}` are looked up in the same
places, as are those of the providers `io.strimzi.kafka.KubernetesSecretConfigProvider` and
`…ConfigMapConfigProvider`; the namespace is not looked at. `${strimzienv:…}`, `${strimzifile:…}` and
`${strimzidir:…}` mean this machine's environment and files.

## Status

`--status-file FILE` holds the resource with its `status`, as the operator writes it; it is replaced every 5 s where
something has changed, and at the end.

| field | what it says |
|---|---|
"""

_FIELDS_HEAD = """
## Fields

Of `spec`. One with `no effect` is named by a warning if it is there, and so is a field that Strimzi doesn't have; what
is below one with `no effect` isn't looked at.

| field | in | effect | |
|---|---|---|---|
"""

_OPERATED_HEAD = """
`sparkmirror operator` ([operator.md](deploy/operator.md)) makes more of some of them:

| field | under the operator |
|---|---|
"""

_AUTHENTICATION_HEAD = """
Below `tls` there is `trustedCertificates`, each with `secretName` and `certificate` or `pattern`. Below
`authentication` there are, beside `type`:

| `type` | field | effect |
|---|---|---|
"""

_TAIL = """
## Examples

`examples/strimzi` has files of the kinds that Strimzi ships; tests run them with real brokers, unchanged but for
addresses. Strimzi's own can be run in the same way from a checkout of theirs:

```
STRIMZI_EXAMPLES=strimzi-kafka-operator/packaging/examples make test ARGS="--full tests/engine/test_strimzi_own.py"
```

This page is made from the code: `python -m sparkmirror.formats.strimzi_page > docs/strimzi.md`.
"""


def page() -> str:
    """Return the whole page."""
    return (
        _HEAD
        + "\n".join(_status())
        + "\n"
        + _FIELDS_HEAD
        + "\n".join(_rows())
        + "\n"
        + _OPERATED_HEAD
        + "\n".join(_operated())
        + "\n"
        + _AUTHENTICATION_HEAD
        + "\n".join(_authentication())
        + "\n"
        + _TAIL
    )


def _status() -> Iterator[str]:
    for name, words in STATUS:
        yield f"| `{name}` | {words} |"


def _rows() -> Iterator[str]:
    for field in FIELDS:
        yield f"| `{field.path}` | {field.versions or 'both'} | {field.effect} | {field.words} |"


def _operated() -> Iterator[str]:
    for path, words in OPERATED.items():
        yield f"| `{path}` | {words} |"


def _authentication() -> Iterator[str]:
    for kind, fields in OF_TYPES.items():
        yield f"| `{kind}` | {', '.join(f'`{field}`' for field in fields)} | honoured |"
    for field, words in OAUTH_IDLE.items():
        yield f"| `oauth` | `{field}` | no effect: {words} |"


if __name__ == "__main__":
    print(page(), end="")
