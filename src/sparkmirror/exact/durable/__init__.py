"""Durable records: claims, identities, progress, losses, known topics.

Durable records outlive a process, and lie in topics at the target. `cluster` reads and writes topics for this
package; `position`, `translation`, `pump` and all packages above import this package. Start with `claims`: the record
format that exactness rests on.
"""
