"""What is believed of a schedule before it is run."""
