"""TVM sketches, one file each."""
