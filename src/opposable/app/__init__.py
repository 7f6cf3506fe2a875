"""Composition root: opens models, tools, databases and agents from the settings."""
