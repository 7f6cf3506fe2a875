"""MCP servers as tools: connections that come back, tools that are pinned, results as values."""
