"""Tools of a library for other agent frameworks."""
