"""Devices that candidates run on, one file each."""
