"""Learners on features: scikit-learn classifiers and regressors, registered by task."""

from orbit.learners.adagrad import AdaGradClassifier, AdaGradRegressor
from orbit.learners.operator import CGRegressor, SteinClassifier, SteinRegressor
from orbit.learners.ridge import RidgeClassifier, RidgePath, RidgeRegressor
from orbit.learners.svm import SVMClassifier

__all__ = [
    "AdaGradClassifier",
    "AdaGradRegressor",
    "CGRegressor",
    "RidgeClassifier",
    "RidgePath",
    "RidgeRegressor",
    "SVMClassifier",
    "SteinClassifier",
    "SteinRegressor",
]
