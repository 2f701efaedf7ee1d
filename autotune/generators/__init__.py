"""Code generators, one file each."""
