def definition(name): return name
def environment_of(d):
    import os
    if d == "master" and not os.environ.get("NOREC"):
        return {"SPARK_DAEMON_MEMORY": "512m", "SPARK_MASTER_OPTS": "-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory=/var/lib/sparkmirror/recovery"}
    return {"SPARK_DAEMON_MEMORY": "512m"}
