"""The command line.

Belongs here: options, progress, printing, exit codes. Does not belong here: any work. Only the
commands that materialize import Dagster, and each command is imported when it is called.
"""
