"""The asset graph: Dagster's view of the pipeline.

Belongs here: assets, asset checks, partitions, schedules, sensors, and the resource that hands
them the project. A body reads, calls the pipeline, writes metadata. Does not belong here: any
rule about traces, contracts or standings.

No `from __future__ import annotations` in this package: Dagster reads the annotations.
"""
