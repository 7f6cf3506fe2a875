"""The nouns that travel between rooms: frozen classes that import nothing of ours."""
