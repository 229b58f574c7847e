"""Counting: verdict rows in, standings out. Pure: no I/O, no clock, no unseeded randomness.

Belongs here: statistics, ranking, what is comparable. Does not belong here: verdicts
(`scoring`) or layout (`report`).
"""

LEADERBOARD_VERSION = "3"
"""Raised whenever the same runs could give other standings; a new edition is then published."""
