"""Frozen types that cross the boundaries between layers.

Belongs here: what a trace, a contract, a verdict and a leaderboard *are*, with the validation
that needs nothing but the value itself. Does not belong here: reading or writing anything
(`adapters`), judging (`scoring`), counting (`leaderboard`), rendering (`report`).

Two libraries, each where it is best: pydantic for what people write (contracts,
`benchmark.yaml`), msgspec for what machines write (snapshots, verdicts, standings).
"""
