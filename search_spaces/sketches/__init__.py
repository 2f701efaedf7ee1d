"""Sketches by code generator."""
