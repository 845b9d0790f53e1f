"""Where results go: the run folder first, then MLflow."""
