"""The steps of the graph as plain functions: each reads through adapters, calls, writes.

Belongs here: what Dagster's assets and the command line share, so that either gives the same
bytes: ingesting, planning, evaluating, publishing. Does not belong here: Dagster (`defs`),
printing (`cli`), or anything that the four layers below do by themselves.

This is the only layer that sees `scoring`, `leaderboard`, `report` and `adapters` together.
"""
