"""Kafka Connect's REST interface and storage topics over sparkmirror's flows.

Connectors are kept in the target cluster's topics, and are read and changed over the REST interface. A request passes
`manners`, `api` and `herder`, which writes the topics; the herder's thread hands the wanted connectors to `worker`.
"""
