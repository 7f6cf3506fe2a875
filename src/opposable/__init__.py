"""Opposable: tool use for any model."""
