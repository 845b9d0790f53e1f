"""Code shared by all subpackages: parameters, errors, seeds, progress, threads, processes, dense linear algebra."""
