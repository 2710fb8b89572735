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
    ("connectors", "As in Connect's status: name, state, tasks, and the reason of a failure as `trace`."),
    ("connectorPlugins", "MirrorMaker 2's three classes, with sparkmirror's version."),
    ("replicas", "1 while the mirror runs, else 0."),
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

`sparkmirror run` takes a `KafkaMirrorMaker2` of `kafka.strimzi.io/v1` or `v1beta2` as it is; a file may have several.
All verbs take such a file, also `sparkmirror config` and `sparkmirror lint`. On Kubernetes an operator runs the
resources themselves ([operator.md](deploy/operator.md)).

The file may be YAML or JSON, also the output of `kubectl get kmm2 -o yaml` or `-o json` with `kind: List`; a directory
stands for all such files in it. Resources of other kinds in it are passed over, except Secrets and ConfigMaps, and so
are empty documents, as by kubectl. A resource has one target: write three resources for mirrors into three targets.
Another vendor's `apiVersion` (`eventstreams.ibm.com/v1beta2` of IBM Event Streams) is refused, with the words to write
instead: the fields are Strimzi's. A Helm chart's template must be rendered first:
`helm template RELEASE CHART > mirror.yaml`.

sparkmirror reads the resource as Strimzi's operator does: first into the configuration of Connect's workers and
connectors, then into the keys of an mm2.properties file. So everything in [configuration.md](configuration.md) holds,
with the same names.
`sparkmirror convert mirror.yaml --to properties` prints those keys ([convert.md](convert.md)).

The running mirror watches the file, or each file of a directory (every two seconds, through links, as Kubernetes mounts
a ConfigMap). It takes over a valid change: unchanged flows go on, and a line (`file-changed`) names the changed flows
and keys. It refuses an invalid change in one line (`file-not-taken`), and goes on as before.
`spark.*` settings count from the next start on.

## Secrets

`--secrets DIR`, or the environment variable `SPARKMIRROR_SECRETS`, names a directory with

- `DIR/<name>/<key>`: Secrets as Kubernetes mounts them. They become references: each process reads them when it
  connects, Spark's workers too, so mount them there as well. No secret travels, and a renewed Secret counts from
  the next connection.
- `DIR/*.yaml`: manifests of Secrets and ConfigMaps. They may also stand in the file of the resource itself. Their
  values are taken when the run starts; on a Spark cluster they travel, so Spark's encryption must be on.

`lint`, `config` and `convert` work without missing Secrets: a warning names each missing Secret, and its values are
not known. All other verbs stop, and name all missing Secrets at once. Converting a resource from v1beta2 to v1 needs no
Secrets.

In values, `${strimzisecrets:<namespace>/<name>:<key>}` and `${strimziconfigmaps:…}` are looked up in the same
places, as are those of the providers `io.strimzi.kafka.KubernetesSecretConfigProvider` and
`…ConfigMapConfigProvider`; the namespace is ignored. `${strimzienv:…}`, `${strimzifile:…}` and
`${strimzidir:…}` mean this machine's environment and files.

## Status

`--status-file FILE` holds the resource with its `status`, as the operator writes it; the file is replaced every 5 s if
the status has changed, and at the end.

| field | what it says |
|---|---|
"""

_FIELDS_HEAD = """
## Fields

These are the fields of `spec`. A warning names each field with `no effect` in a file, and each field that Strimzi
doesn't have; fields below one with `no effect` are ignored.

| field | in | effect | |
|---|---|---|---|
"""

_OPERATED_HEAD = """
`sparkmirror operator` ([operator.md](deploy/operator.md)) uses more of these fields:

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

`examples/strimzi` has files of the kinds that Strimzi ships; tests run them with real brokers, with changed addresses
only. Strimzi's own examples can be run in the same way from a checkout of Strimzi:

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
