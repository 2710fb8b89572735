"""Kafka Connect's REST interface and storage topics over sparkmirror's flows.

Connectors are kept in topics of the target cluster, and are read and changed over the REST interface.
"""
