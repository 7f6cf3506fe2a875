"""Runs programs nobody vouches for: no network, no files but their own, and limits on all they use."""
