"""Recording of results: first in the run folder, then in MLflow."""
