"""The exactly-once sink: rows appended to Kafka, each once, whatever dies.

A query has one producer id, agreed in a control topic; Spark's batch number is Kafka's producer epoch. So brokers fence
older batches, and a partition's sequence counts the batch's records there. An attempt appends optimistically from
sequence 0. Refused, it reads back what earlier attempts of its batch appended, takes these rows out, and appends the
rest by compare-and-append (`docs/exactness.md`, "The sink").
"""
