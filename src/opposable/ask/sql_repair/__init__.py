"""Sql repair."""
