"""The service without HTTP: stored agents, conversations, runs and approvals."""
