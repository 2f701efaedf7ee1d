"""What tuning many workloads costs, and how long it takes on a number of devices."""
