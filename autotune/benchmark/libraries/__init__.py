"""Libraries that tuned kernels are held against, one file each."""
