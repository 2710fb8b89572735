"""Kubernetes' own programs, CoreDNS, kwok and Helm, built once into the cache.

They come from Go's module proxy; a test is skipped where they can't be had. Kubernetes' module names versions of its
parts that were never published: each is replaced by the published one. The five programs become one with five names.
It takes about ten minutes of a core, so it is worth doing by hand before: `python tests/deploy/kube_build.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sparkmirror.demo.cache import cache_root, locked

KUBERNETES = "1.36.3"
ETCD = "v3.7.3"
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
COREDNS = "github.com/coredns/coredns"
COREDNS_VERSION = "v1.15.0"
KWOK = "sigs.k8s.io/kwok"
KWOK_VERSION = "v0.8.0"
KEDA = "github.com/kedacore/keda/v2@v2.21.0"
PLACE = cache_root() / "deploy" / "kube"
BUILD_S = 3600
NAMES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")

_PROGRAM = """\
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kube-proxy":              proxy.NewProxyCommand,
	}
	os.Exit(cli.Run(commands[filepath.Base(os.Args[0])]()))
}
"""

_DNS_PROGRAM = """\
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	coremain.Run()
}
"""
"""CoreDNS with what names in a cluster need; all of its plugins would bring three clouds' clients."""


def kubernetes() -> Path:
    """The directory of `NAMES` and `etcd`."""
    with locked(PLACE / "build"):
        if not all((PLACE / name).exists() for name in (*NAMES, "etcd")):
            with TemporaryDirectory() as directory:
                _build_kubernetes(Path(directory))
                _build_etcd(Path(directory) / "etcd")
    return PLACE


def helm() -> Path:
    """Helm: the one that is installed, or one that is built here."""
    installed = shutil.which("helm")
    if installed is not None:
        return Path(installed)
    with locked(PLACE / "build"):
        if not (PLACE / "helm").exists():
            _go("install", HELM, directory=PLACE, GOBIN=str(PLACE))
    return PLACE / "helm"


def coredns() -> Path:
    """The server of a cluster's names."""
    with locked(PLACE / "build"):
        if not (PLACE / "coredns").exists():
            with TemporaryDirectory() as directory:
                _build_coredns(Path(directory))
    return PLACE / "coredns"


def kwok() -> tuple[Path, Path]:
    """The program that plays nodes, and the file of the stages that their nodes and pods go through."""
    stages = PLACE / "kwok-stages.yaml"
    with locked(PLACE / "build"):
        if not (PLACE / "kwok").exists():
            _go("install", f"{KWOK}/cmd/kwok@{KWOK_VERSION}", directory=PLACE, GOBIN=str(PLACE))
        if not stages.exists():
            module = json.loads(_go("mod", "download", "-json", f"{KWOK}@{KWOK_VERSION}", directory=PLACE))["Dir"]
            files = sorted(
                file
                for kind in ("node/fast", "node/heartbeat", "pod/fast")
                for file in (Path(module) / "kustomize" / "stage" / kind).glob("*.yaml")
                if file.name != "kustomization.yaml"
            )
            stages.write_text("---\n".join(file.read_text() for file in files))
    return PLACE / "kwok", stages


def keda_definitions() -> Path:
    """The directory of KEDA's definitions of its kinds, from its module."""
    with locked(PLACE / "build"):
        module = json.loads(_go("mod", "download", "-json", KEDA, directory=PLACE))["Dir"]
    return Path(module) / "config" / "crd" / "bases"


def kubectl() -> str:
    """The one that is installed."""
    installed = shutil.which("kubectl")
    if installed is None:
        pytest.skip("there is no kubectl")
    return installed


def _build_kubernetes(directory: Path) -> None:
    module = f"k8s.io/kubernetes@v{KUBERNETES}"
    (directory / "main.go").write_text(_PROGRAM)
    _go("mod", "init", "programs", directory=directory)
    own = json.loads(_go("mod", "download", "-json", module, directory=directory))["GoMod"]
    replaced = json.loads(_go("mod", "edit", "-json", own, directory=directory))["Replace"]
    parts = [item["Old"]["Path"] for item in replaced if not item["Old"]["Path"].startswith("k8s.io/sample-")]
    published = KUBERNETES.partition(".")[2]
    edits = [f"-replace={part}={part}@v0.{published}" for part in parts]
    _go("mod", "edit", f"-require={module}", *edits, directory=directory)
    stamp = "-X k8s.io/component-base/version."
    major, minor, _ = KUBERNETES.split(".")
    flags = f"-s -w {stamp}gitVersion=v{KUBERNETES} {stamp}gitMajor={major} {stamp}gitMinor={minor}"
    _go("build", "-trimpath", "-ldflags", flags, "-o", str(PLACE / NAMES[0]), ".", directory=directory)
    for name in NAMES[1:]:
        (PLACE / name).unlink(missing_ok=True)
        (PLACE / name).symlink_to(NAMES[0])


def _build_etcd(directory: Path) -> None:
    directory.mkdir()
    _go("mod", "init", "etcd", directory=directory)
    _go("get", f"go.etcd.io/etcd/server/v3@{ETCD}", directory=directory)
    path = str(PLACE / "etcd")
    _go("build", "-trimpath", "-ldflags", "-s -w", "-o", path, "go.etcd.io/etcd/server/v3", directory=directory)


def _build_coredns(directory: Path) -> None:
    (directory / "main.go").write_text(_DNS_PROGRAM)
    _go("mod", "init", "names", directory=directory)
    _go("get", f"{COREDNS}@{COREDNS_VERSION}", directory=directory)
    _go("build", "-trimpath", "-ldflags", "-s -w", "-o", str(PLACE / "coredns"), ".", directory=directory)


def _go(*words: str, directory: Path, **environment: str) -> str:
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go here to build Kubernetes with")
    more = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", **environment}
    command = ["nice", "-n", "15", go, *words]
    done = subprocess.run(
        command, cwd=directory, env=os.environ | more, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    if done.returncode:
        pytest.skip(f"go {words[0]} failed: {done.stderr[-500:]}")
    return done.stdout


if __name__ == "__main__":
    print(kubernetes())
    print(coredns())
    print(kwok()[0])
    print(helm())
