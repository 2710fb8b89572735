"""Kafka Connect's way in: connectors kept in the target cluster, asked and changed over Connect's REST interface."""
