"""ASGI middleware: authentication, request limits, security headers."""
