"""Files on disk as tools may meet them: allowed folders, and text in its encodings."""
