"""Recorded spaces: what was measured of a space, replayed without its device; formats to read and write them."""
