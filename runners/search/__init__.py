"""Search for settings by Optuna: ``hydra/sweeper=optuna``."""
