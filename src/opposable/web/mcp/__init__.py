"""A tool library as an MCP server."""
