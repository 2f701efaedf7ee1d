"""Operators, one file each; the file is the name on the command line."""
