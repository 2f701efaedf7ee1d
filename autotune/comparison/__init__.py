"""Strategies compared over recorded spaces: replay, score, tests of significance, tables and plots."""
