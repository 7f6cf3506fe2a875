"""Durable runs and batches: worker processes that execute runs as DBOS workflows on PostgreSQL."""
