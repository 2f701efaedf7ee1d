"""Formats that a tuned log is exported to, one file each."""
