"""Where builders and devices are, one file each."""
