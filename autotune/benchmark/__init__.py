"""Tuned kernels against the libraries of the machine, suite by suite."""
