"""The browser tool."""
