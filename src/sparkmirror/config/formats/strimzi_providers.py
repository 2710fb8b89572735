"""A resource's config providers.

They are the operator's own, those for Kubernetes' objects, and declared providers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkmirror.config.declared_providers import FAMILY, PROVIDERS_KEY
from sparkmirror.config.declared_providers import PACKAGE as PROVIDERS_PACKAGE
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.secrets import DIRECTORY_PROVIDER, Secrets
from sparkmirror.config.providers import CLASSES

_BUILT_IN = {"strimzienv": CLASSES[0], "strimzifile": CLASSES[1], DIRECTORY_PROVIDER: CLASSES[2]}
KUBERNETES_PROVIDERS = {"strimzisecrets": "Secret", "strimziconfigmaps": "ConfigMap"}
"""Object kinds by the name of the operator's own provider."""
KUBERNETES_CLASSES = {"KubernetesSecretConfigProvider": "Secret", "KubernetesConfigMapConfigProvider": "ConfigMap"}
"""Object kinds by the class of a declared provider."""


class Providers:
    """Config providers for all resources in a file.

    References to Kubernetes' objects are looked up, too.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._kubernetes = dict(KUBERNETES_PROVIDERS)
        self._stated: dict[str, Entry] = {}
        self._used: set[str] = set()

    def take(self, settings: Mapping[str, Entry]) -> None:
        """Take the declarations in a cluster's `config`."""
        names = [name.strip() for name in settings[PROVIDERS_KEY].value.split(",")] if PROVIDERS_KEY in settings else []
        for name in filter(None, names):
            stated = settings.get(f"{FAMILY}{name}.class")
            kind = stated.value.strip().rpartition(".")[2] if stated else ""
            if kind in KUBERNETES_CLASSES:
                self._kubernetes[name] = KUBERNETES_CLASSES[kind]
                continue
            self._used.add(name)
            self._stated |= {key: entry for key, entry in settings.items() if key.startswith(f"{FAMILY}{name}.")}

    def resolved(self, text: str) -> str:
        """Return a text with references to Secrets and ConfigMaps looked up.

        Raise `ValueError`.
        """

        def value(reference: re.Match[str]) -> str:
            kind = self._kubernetes.get(reference[1])
            if kind is None:
                return reference[0]
            return self._secrets.text(reference[2].rpartition("/")[2], reference[3], kind=kind)

        text = re.sub(r"\$\{([^}:]*):([^}:]*):([^}:]*)\}", value, text)
        self._used.update(name for name in _BUILT_IN if f"${{{name}:" in text)
        return text

    def entries(self, path: str) -> list[Entry]:
        """Return the declarations that count."""
        if not self._used:
            return []
        built_in = [
            Entry(key=f"{FAMILY}{name}.class", value=PROVIDERS_PACKAGE + kind, where=path)
            for name, kind in _BUILT_IN.items()
            if name in self._used
        ]
        return [
            Entry(key=PROVIDERS_KEY, value=", ".join(sorted(self._used)), where=path),
            *built_in,
            *self._stated.values(),
        ]
