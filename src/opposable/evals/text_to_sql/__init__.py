"""Text to sql."""
