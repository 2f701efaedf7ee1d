"""What could run: targets, hardware limits, operators, sketches, knobs and the spaces they span."""
