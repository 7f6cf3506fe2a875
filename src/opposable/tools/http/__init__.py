"""HTTP endpoints as tools: described as data, or read from an OpenAPI document."""
