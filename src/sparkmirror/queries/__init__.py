"""Spark queries that copy topics and change their records on the way.

A query copies the topics of its patterns in the place of pumps. Micro-batches are agreed in a topic at the target, and
appended by the exactly-once sink.
"""
