"""A process's engine: Spark, rounds of pump jobs, lease, plan, snapshot.

`mirror` is the loop, and `round_runner` runs one round. `flow_driver` owns the parts that work on one flow:
`leadership`, `predecessors`, `flow_topics`, `order_book`, `driver_control`, `report_watch`. `planner` and `assignment`
deal partitions out to tasks, `change` and `change_watch` exchange partitions between running tasks, and `observer`
makes the snapshot for metrics, page and verbs. Start with `mirror`.

Only this package, `api`, `frames`, `sink` and `connect`'s worker import pyspark.
"""
