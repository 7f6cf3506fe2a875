"""The service over HTTP: API, OpenAI-compatible gateway and MCP server."""
