"""A pump: the loop in a Spark task that copies the batches of its partitions.

`pump` runs the flows of one task, `flow_pump` one flow, `partition` one partition's state machine. `engine` and
everything above import it. Start with `partition`.
"""
