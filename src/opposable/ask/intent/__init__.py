"""What a question asks for: time words, the structured intent, its parser, and its SQL."""
