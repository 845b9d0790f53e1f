"""All components: importing this module registers those of ``orbit``, of other packages, and the runners."""

import orbit
from runners import report  # noqa: F401
from runners.experiments import (  # noqa: F401
    compare,
    fit,
    invariance,
    kernel_error,
    orbit_error,
    orff_error,
    predict,
    result_table,
    skeleton_error,
    skeleton_locality,
    sync,
    validate,
    vector_fields,
)
from runners.timing import budget, memory, timing  # noqa: F401

orbit.available()
