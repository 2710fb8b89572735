"""The files of `deploy/fargate`, for the AWS CLI: what Terraform makes, with placeholders.

`python -m tests.deploy.fargate_files` writes them again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.deploy.terraform import Workspace
from tests.deploy.terraform import service as resource

from sparkmirror import __version__

DIRECTORY = Path(__file__).parents[2] / "deploy" / "fargate"
SERVICES = ("driver", "master", "worker", "prometheus", "grafana")


def fargate_files(deployment: Mapping[str, Any]) -> dict[str, str]:
    """Texts by name: of each service its task definition, and the policies of its two roles."""
    named = _placeholders(deployment)
    files: dict[str, Any] = {
        "trust.json": json.loads(resource(deployment, "driver", "aws_iam_role.task")["assume_role_policy"])
    }
    for service in SERVICES:
        files[f"{service}/task-definition.json"] = _task_definition(deployment, service)
        for role in ("task", "execution"):
            policy = resource(deployment, service, f"aws_iam_role_policy.{role}")["policy"]
            files[f"{service}/{role}-policy.json"] = json.loads(policy)
    files["bastion-policy.json"] = json.loads(deployment["module.mirror.aws_iam_role_policy.bastion[0]"]["policy"])
    texts = {name: json.dumps(tree, indent=2) + "\n" for name, tree in files.items()}
    for value, name in named.items():
        texts = {file: text.replace(value, f"${{{name}}}") for file, text in texts.items()}
    return texts


def _placeholders(deployment: Mapping[str, Any]) -> dict[str, str]:
    """What stands for the sample's values, longer ones first."""
    return {
        f"{_repository(deployment, 'sparkmirror')}:{__version__}": "IMAGE",
        f"{_repository(deployment, 'sparkmirror-prometheus')}:{__version__}": "PROMETHEUS_IMAGE",
        deployment["module.mirror.aws_efs_file_system.master[0]"]["id"]: "FILE_SYSTEM",
        deployment["module.mirror.aws_efs_access_point.master[0]"]["id"]: "ACCESS_POINT",
        "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/grafana-AbCdEf": "GRAFANA_SECRET",
        "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/spark-AbCdEf": "SPARK_SECRET",
        **{
            f"arn:aws:kafka:us-west-1:012345678910:{kind}/{cluster}": f"{side}_{kind.upper()}"
            for side, cluster in (("SOURCE", "old/0123-1"), ("TARGET", "new/4567-2"))
            for kind in ("cluster", "topic", "group")
        },
        "012345678910": "ACCOUNT",
        "us-west-1": "REGION",
        "migrationsample": "APP",
        "ExampleTopic": "TOPICS",
    }


def _repository(deployment: Mapping[str, Any], name: str) -> str:
    url: str = deployment[f'module.repositories.aws_ecr_repository.this["{name}"]']["repository_url"]
    return url


def _task_definition(deployment: Mapping[str, Any], service: str) -> dict[str, Any]:
    told = resource(deployment, service, "aws_ecs_task_definition.this")
    containers = json.loads(told["container_definitions"])
    for container in containers:
        container["environment"] = [one for one in container["environment"] if one["name"] != "CONFIGURATION_DIGEST"]
    (platform,) = told["runtime_platform"]
    tree = {
        "family": told["family"],
        "requiresCompatibilities": told["requires_compatibilities"],
        "networkMode": told["network_mode"],
        "cpu": told["cpu"],
        "memory": told["memory"],
        "executionRoleArn": told["execution_role_arn"],
        "taskRoleArn": told["task_role_arn"],
        "runtimePlatform": {
            "operatingSystemFamily": platform["operating_system_family"],
            "cpuArchitecture": platform["cpu_architecture"],
        },
        "containerDefinitions": containers,
        "volumes": sorted((_volume(one) for one in told["volume"]), key=lambda one: str(one["name"])),
    }
    for disk in told["ephemeral_storage"]:
        tree["ephemeralStorage"] = {"sizeInGiB": disk["size_in_gib"]}
    return tree


def _volume(told: Mapping[str, Any]) -> dict[str, Any]:
    volume: dict[str, Any] = {"name": told["name"]}
    for shared in told["efs_volume_configuration"]:
        (signed,) = shared["authorization_config"]
        volume["efsVolumeConfiguration"] = {
            "fileSystemId": shared["file_system_id"],
            "transitEncryption": shared["transit_encryption"],
            "authorizationConfig": {"accessPointId": signed["access_point_id"], "iam": signed["iam"]},
        }
    return volume


def main() -> None:
    """Write them all."""
    with tempfile.TemporaryDirectory() as directory:
        made = Workspace(Path(directory))
        made.init()
        for name, text in fargate_files(made.applied()).items():
            (DIRECTORY / name).parent.mkdir(parents=True, exist_ok=True)
            (DIRECTORY / name).write_text(text)


if __name__ == "__main__":
    main()
