"""The only reading and writing below `defs` and `cli`: formats, sources, contract files, store.

Belongs here: one module per outside thing. Does not belong here: judging, counting, rendering.
"""
