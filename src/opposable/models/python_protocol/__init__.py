"""Python protocol."""
