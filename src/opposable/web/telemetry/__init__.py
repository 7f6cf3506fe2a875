"""Logs, metrics and traces of the service."""
