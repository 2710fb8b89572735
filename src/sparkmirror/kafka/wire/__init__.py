"""Kafka's protocol where speed counts: Fetch, Produce, batches, connections.

Batches stay bytes: `batches` reads and rewrites headers, `splice` and `joining` cut batches open. `channel` and `rpc`
are connections without and with waiting. `cluster` and everything above import the package; it imports no other
sparkmirror package. Start with `batches`.
"""
