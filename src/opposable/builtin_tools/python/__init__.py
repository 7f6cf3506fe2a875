"""The Python tool."""
