"""Pump, the loop in a Spark task that copies the batches of the task's partitions.

`pump` runs the flows of one task, `flow_pump` runs one flow, and `partition` is the state machine of one partition.
`engine` and all packages above import this package. Start with `partition`.
"""
