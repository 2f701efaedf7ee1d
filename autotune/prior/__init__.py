"""What was learnt of other tasks, and how a new task makes use of it."""
