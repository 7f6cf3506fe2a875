"""The semantic layer: what the business calls things, and which SQL they stand for."""
