"""What there shall be in the cluster for a resource, whatever the resource says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operated import KEY, resource

from sparkmirror.operator.names import selector
from sparkmirror.operator.objects import KINDS, Circumstances, desired_objects
from sparkmirror.operator.plan import SECRETS, make_plan
from sparkmirror.operator.references import Contents, ObjectReference
from sparkmirror.operator.workload import connect_workload

CONTENTS: Contents = {ObjectReference("Secret", "mirror-user"): {"password": b"hush"}}
AROUND = Circumstances(
    image="registry/sparkmirror:1",
    class_name="sparkmirror",
    operator_labels={"app": "operator"},
    operator_namespace="operators",
)


def objects(tree: dict[str, Any], contents: Contents = CONTENTS, around: Circumstances = AROUND) -> dict[str, Any]:
    workload = connect_workload(tree["spec"], KEY, make_plan(tree, KEY, contents), contents)
    made = desired_objects(tree, KEY, workload, around)
    assert [(item["apiVersion"], item["kind"]) for item in made] == list(KINDS)
    return {item["kind"]: item for item in made}


def pod(tree: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = objects(tree, **more)["Deployment"]["spec"]["template"]["spec"]
    return spec


names = st.dictionaries(
    st.sampled_from(
        ["team", "strimzi.io/cluster", "app.kubernetes.io/managed-by", "strimzi.io/kind", "sparkmirror.io/class", "a/b"]
    ),
    st.sampled_from(["x", "theirs"]),
)
metadata = st.fixed_dictionaries({"labels": names, "annotations": names})
templates = st.fixed_dictionaries(
    {},
    optional={
        "pod": st.fixed_dictionaries({"metadata": metadata}),
        "deployment": st.fixed_dictionaries({"metadata": metadata}),
        "apiService": st.fixed_dictionaries({"metadata": metadata}),
        "podDisruptionBudget": st.fixed_dictionaries({"metadata": metadata}),
        "serviceAccount": st.fixed_dictionaries({"metadata": metadata}),
    },
)


@given(templates, st.integers(0, 5))
def test_whatever_a_template_says_they_belong_together(template: dict[str, Any], replicas: int) -> None:
    tree = resource(lambda spec: spec.update(template=template, replicas=replicas))
    made = objects(tree)
    for item in made.values():
        assert item["metadata"]["namespace"] == KEY.namespace
        assert item["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "sparkmirror-operator"
        assert item["metadata"]["annotations"]["sparkmirror.io/class"] == "sparkmirror"
        assert [owner["uid"] for owner in item["metadata"]["ownerReferences"]] == ["0815"]
    deployment = made["Deployment"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    for asked in (
        deployment["selector"]["matchLabels"],
        made["Service"]["spec"]["selector"],
        made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        made["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert asked == selector(KEY)
        assert asked.items() <= labels.items()
    assert deployment["replicas"] == replicas


def test_pods_are_restricted_and_know_no_api() -> None:
    spec = pod(resource())
    (container,) = spec["containers"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert spec["automountServiceAccountToken"] is False
    assert container["image"] == "registry/sparkmirror:1"


def test_what_is_mounted_is_what_the_worker_file_names() -> None:
    spec = pod(resource())
    mounts = {item["mountPath"]: item["name"] for item in spec["containers"][0]["volumeMounts"]}
    volumes = {item["name"]: item for item in spec["volumes"]}
    assert set(mounts.values()) == set(volumes)
    mounted = volumes[mounts[f"{SECRETS}/mirror-user"]]
    assert mounted["projected"]["sources"] == [{"secret": {"name": "mirror-user"}}]


def test_a_changed_secret_takes_new_pods_and_nothing_else_does() -> None:
    def annotations(contents: Contents, tree: dict[str, Any]) -> dict[str, str]:
        result: dict[str, str] = objects(tree, contents)["Deployment"]["spec"]["template"]["metadata"]["annotations"]
        return result

    renewed: Contents = {ObjectReference("Secret", "mirror-user"): {"password": b"new"}}
    assert annotations(CONTENTS, resource()) != annotations(renewed, resource())
    topics = resource(lambda spec: spec["mirrors"][0].update(topicsPattern="parcels"))
    assert annotations(CONTENTS, resource()) == annotations(CONTENTS, topics), "connectors change without new pods"


def test_what_the_resource_says_of_pods() -> None:
    def say(spec: dict[str, Any]) -> None:
        spec["resources"] = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "500m"}}
        spec["livenessProbe"] = {"initialDelaySeconds": 60, "timeoutSeconds": 9}
        spec["template"] = {
            "pod": {
                "priorityClassName": "high",
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 90,
                "tmpDirSizeLimit": "5Mi",
                "volumes": [{"name": "extra", "emptyDir": {}}],
            },
            "connectContainer": {
                "env": [{"name": "RACK", "value": "a"}],
                "volumeMounts": [{"name": "extra", "mountPath": "/mnt/extra"}],
            },
            "podDisruptionBudget": {"maxUnavailable": 0},
            "deployment": {"deploymentStrategy": "Recreate"},
        }
        spec["externalConfiguration"] = {
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        }

    made = objects(resource(say))
    spec = made["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["resources"] == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "500m"}}
    assert container["livenessProbe"]["initialDelaySeconds"] == 60
    assert container["livenessProbe"]["timeoutSeconds"] == 9
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == ("high", 90)
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "5Mi"}} in spec["volumes"]
    assert [item["name"] for item in container["env"]] == ["SPARKMIRROR_POD_IP", "A", "RACK"]
    assert {"name": "ext-v", "mountPath": "/opt/kafka/external-configuration/v", "readOnly": True} in container[
        "volumeMounts"
    ]
    assert {item["name"] for item in container["volumeMounts"]} == {item["name"] for item in spec["volumes"]}
    assert made["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 0
    assert made["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}


def test_the_rest_interface_is_for_pods_and_the_operator_only() -> None:
    first, second = objects(resource())["NetworkPolicy"]["spec"]["ingress"]
    assert [port["port"] for port in first["ports"]] == [8083]
    its_namespace = {"matchLabels": {"kubernetes.io/metadata.name": "operators"}}
    assert {"podSelector": {"matchLabels": {"app": "operator"}}, "namespaceSelector": its_namespace} in first["from"]
    assert [port["port"] for port in second["ports"]] == [9404]
    assert "from" not in second


@pytest.mark.parametrize("at", ["", "2026-01-01T00:00:00Z"])
def test_pods_that_are_asked_for_again(at: str) -> None:
    around = replace(AROUND, rolled_at=at)
    stamps = objects(resource(), around=around)["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert stamps.get("sparkmirror.io/rolled-at", "") == at
