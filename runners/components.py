"""All components: importing this module registers those of ``orbit``, the runners, and those of other packages."""

from orbit import registry
from runners.experiments import compare, discover, fit, forces, predict, result_table, sync, validate, validation  # noqa: F401

registry.available()
registry.load_plugins(registry.RUNNERS)
