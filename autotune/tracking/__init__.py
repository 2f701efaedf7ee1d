"""MLflow as a sink of the journal: what is logged, where, and how it is kept up to date."""
