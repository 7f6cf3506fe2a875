"""Evaluation of text-to-SQL answerers."""
