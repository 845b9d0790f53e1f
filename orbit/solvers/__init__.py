"""Regularised least squares: moments, factorisations for a path of lambda, conjugate gradients, selection."""
