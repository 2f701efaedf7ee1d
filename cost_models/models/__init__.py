"""Cost models, one file each."""
