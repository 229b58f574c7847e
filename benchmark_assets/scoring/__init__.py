"""Judging: snapshots and contracts in, verdicts out. Pure: no I/O, no clock, no randomness.

Belongs here: plugins, routing of traces to contracts, the verdict over a run. Does not belong
here: reading contracts or traces (`adapters`) and counting verdicts (`leaderboard`).
"""
