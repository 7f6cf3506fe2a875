"""Answers questions in natural language from a database."""
