"""Kafka's wire protocol, and whole clusters."""
