"""HTTP requests of tools: a guard against internal addresses, and the client that applies it."""
