"""Tools for data files: CSV, JSON, Parquet and Excel."""
