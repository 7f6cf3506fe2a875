"""The routes of the API."""
