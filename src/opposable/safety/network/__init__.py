"""The way out to the network for tools: where a request may go, and the one client that goes there."""
