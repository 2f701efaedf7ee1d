"""Finds the fastest schedule of a kernel for given shapes, proves it, and leaves a tuned log."""
