"""What the stand-in for the image apache/kafka runs: a broker with the settings of its environment.

KAFKA_LOG_DIRS is log.dirs; `__` is an underscore and `___` a dash, as in the real one.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

JAVA = ["/opt/java/bin/java", "-cp", "/opt/kafka/*", "-Dlog4j2.level=warn"]
USUAL_CLUSTER = "5L6g3nShT-eMCtK--X86sw"
SETTINGS = Path("/tmp/server.properties")


def key(name: str) -> str:
    """The setting's name, of a variable's."""
    marks = {"_": ".", "__": "_", "___": "-"}
    return re.sub("_+", lambda found: marks[found[0]], name.removeprefix("KAFKA_").lower())


if __name__ == "__main__":
    told = {key(name): value for name, value in os.environ.items() if name.startswith("KAFKA_")}
    SETTINGS.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    tool = [*JAVA, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
    cluster = os.environ.get("CLUSTER_ID", USUAL_CLUSTER)
    subprocess.run([*tool, "--cluster-id", cluster, "--config", str(SETTINGS)], check=True)
    os.execv(JAVA[0], [*JAVA, "-Xmx400m", "-XX:TieredStopAtLevel=1", "kafka.Kafka", str(SETTINGS)])  # noqa: S606
