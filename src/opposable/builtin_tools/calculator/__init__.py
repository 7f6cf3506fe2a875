"""Calculator."""
