"""Learners on features: scikit-learn classifiers and regressors, registered by task."""

from orbit.learners.adagrad import AdaGradClassifier, AdaGradRegressor
from orbit.learners.ridge import RidgeClassifier, RidgePath, RidgeRegressor
from orbit.learners.svm import SVMClassifier

__all__ = ["AdaGradClassifier", "AdaGradRegressor", "RidgeClassifier", "RidgePath", "RidgeRegressor", "SVMClassifier"]
