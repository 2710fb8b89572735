"""Engine of a process: Spark session, epochs of pump jobs, lease, plan, snapshot.

`mirror` is the loop, `flow_driver` works on one flow, `assignment` deals partitions out to tasks, and `observer` makes
the snapshot that metrics, page and verbs show. `doctor`, `page`, `connect`, `cli` and other packages above import it.
Only this package, `frames` and `connect`'s worker import pyspark. Start with `mirror`.
"""
