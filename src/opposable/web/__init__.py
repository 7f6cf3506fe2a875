"""The service over HTTP: an OpenAI-compatible gateway in front of any model."""
