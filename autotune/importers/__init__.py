"""Files of other tuners, one module a format."""
