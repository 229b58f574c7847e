"""Langfuse over its public API: who asks, what the server can, what is read and chosen.

Belongs here: everything that talks to a Langfuse server. Does not belong here: what a trace
means once it is read (`adapters/formats/langfuse`), or where it is kept.

*Why httpx and not the Langfuse SDK for reading.* The SDK validates answers strictly: one row
with a text as metadata, a fractional or null token count, a level or type that it does not know
loses the whole page, and with it up to a thousand other rows. Its version 5 has no way to read
traces of servers before version 4, and version 4 of it is needed for those; one client has to
read both. It does not retry time-outs, resets, truncated bodies or answers of 422, and it cannot
shrink what it asks for. Its `Langfuse()` is one object a public key, so that two projects on two
servers in one process get in each other's way. Here rows stay what the server sent, decoded from
JSON and nothing more. *Writing* traces is what the SDK is for, and the tests use it for that.

Importing this package loads neither Dagster nor pandas nor the SDK.
"""
