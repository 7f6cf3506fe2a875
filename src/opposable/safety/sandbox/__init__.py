"""A sandbox for untrusted programs: no network, no files of the host, limited resources."""
