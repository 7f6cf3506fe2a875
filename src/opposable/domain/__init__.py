"""Frozen data classes that all layers share, and the errors."""
