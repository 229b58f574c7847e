"""A small app-building agent that really works on a project, and the traces it leaves.

Belongs here: the tree and its checks (`project`), the tools and the recording (`harness`), what
the agent does (`scripts`), and the files its traces are kept in (`export`). Does not belong
here: what a contract makes of a trace; `tests/data/app_builder` says what is expected.
"""
