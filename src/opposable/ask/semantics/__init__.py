"""Semantic models: the terms of a business and the SQL that defines them."""
