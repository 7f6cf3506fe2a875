"""The log summary tool."""
