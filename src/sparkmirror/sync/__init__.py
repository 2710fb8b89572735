"""Duties beside the copying: topics, configurations, ACLs, groups, heartbeats, offset syncs.

Each duty has its module and a method that does one turn. `engine` and everything above import it. Start with `topics`.
"""
