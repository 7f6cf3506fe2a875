"""A sandbox for untrusted programs: no network, no host files, limits."""
