"""Structured intents of questions: parsing them, and compiling them to SQL."""
