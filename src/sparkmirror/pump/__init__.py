"""Pump, the loop in a Spark task that copies batches for the task's partitions.

`pump` runs the flows of one task, `flow_pump` runs one flow with a collaborator for each kind of work, and `partition`
is one partition's state machine: `stage` has its transitions, `ready` the work that it asks for. `moved_routes`
releases partitions to other tasks and takes them. `engine` and all packages above import this package. Start with
`stage` and `partition`.
"""
