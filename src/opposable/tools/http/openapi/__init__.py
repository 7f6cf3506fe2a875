"""OpenAPI documents as HTTP tools."""
