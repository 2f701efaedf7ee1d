"""Parts of which strategies are made: where candidates come from, and who chooses among them."""
