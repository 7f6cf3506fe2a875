"""The routes of the API: chats, runs, conversations, approvals, tools, agents, records."""
