"""Runs and comparisons as pages that need no network: charts, their tables, and what may be concluded."""
