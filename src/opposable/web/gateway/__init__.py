"""The OpenAI-compatible gateway: chat completions with tool calls for any model."""
