"""Periodic duties next to the copying: topics, ACLs, groups, internal topics.

Topic configurations, client quotas, heartbeats and offset syncs are among the duties.

Each duty has its module and a method that does one turn. `engine` and everything above import the package. Start with
`topics`.
"""
