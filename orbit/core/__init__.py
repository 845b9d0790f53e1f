"""What every room uses: parameters, errors, seeds, progress, threads, processes and dense linear algebra."""
