"""What a service is made of, whatever it is reached by: agents from data, conversations, runs, approvals."""
