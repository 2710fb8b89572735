"""Requests to one cluster: metadata, offsets, producers, groups, signing in.

`client` asks brokers over blocking connections, `admin` is kafka-python's admin client in sparkmirror's words, and
`topic_log` reads and writes small topics. `durable`, `mm2` and everything above import the package; it imports `wire`
and `config`. Start with `client`.
"""
