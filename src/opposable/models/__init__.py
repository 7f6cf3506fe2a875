"""Models: messages and tool definitions in, text and tool calls out."""
