"""Triton sketches, one file each."""
