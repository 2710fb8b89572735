"""Engine of a process: Spark, rounds of pump jobs, lease, plan, snapshot.

`mirror` is the loop, and `round_runner` runs one round. `flow_driver` owns the parts of the work on one flow:
`leadership`, `predecessors`, `flow_topics`, `order_book`, `driver_control`, `report_watch`. `planner` and `assignment`
deal partitions out to tasks, `change` and `change_watch` exchange them between running tasks, and `observer` makes the
snapshot that metrics, page and verbs show. `doctor`, `page`, `connect`, `cli` and other packages above import it. Only
this package, `frames` and `connect`'s worker import pyspark. Start with `mirror`.
"""
