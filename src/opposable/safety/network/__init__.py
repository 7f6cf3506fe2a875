"""HTTP requests of tools, guarded against internal addresses."""
