"""Protection of the host: filesystem, network, sandbox, and redaction of secrets."""
