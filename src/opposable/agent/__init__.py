"""Runs: a model and tools working on a task."""
