"""Files on disk for tools: allowed folders, and decoding of text."""
