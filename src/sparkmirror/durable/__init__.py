"""Records of ours that outlive a process: claims, producer identities, progress, losses, known topics.

All of them lie in topics at the target. `cluster` reads and writes topics for this package; `position`, `translation`,
`pump` and everything above import it. Start with `claims`: the record format that exactness rests on.
"""
