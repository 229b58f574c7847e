"""Benchmark LLM agents from their traces, deterministically, on a Dagster asset graph."""

__version__ = "0.1.0"
