"""The service's own routes: chats, runs, conversations, approvals, tools, agents, records."""
