"""Learners on features: scikit-learn classifiers and regressors, registered by task."""

from orbit.learners.adagrad import AdaGradClassifier, AdaGradRegressor
from orbit.learners.gp import GaussianProcess
from orbit.learners.krr import KernelRidgeRegressor
from orbit.learners.logistic import LogisticClassifier
from orbit.learners.neighbors import NeighborsClassifier, NeighborsRegressor
from orbit.learners.network import NetworkClassifier
from orbit.learners.operator import CGRegressor, SteinClassifier, SteinRegressor
from orbit.learners.ridge import CholeskyPath, RidgeClassifier, RidgePath, RidgeRegressor
from orbit.learners.svm import KernelSVMClassifier, KernelSVMRegressor, SVMClassifier

__all__ = [
    "AdaGradClassifier",
    "AdaGradRegressor",
    "CGRegressor",
    "CholeskyPath",
    "GaussianProcess",
    "KernelRidgeRegressor",
    "KernelSVMClassifier",
    "KernelSVMRegressor",
    "LogisticClassifier",
    "NeighborsClassifier",
    "NeighborsRegressor",
    "NetworkClassifier",
    "RidgeClassifier",
    "RidgePath",
    "RidgeRegressor",
    "SVMClassifier",
    "SteinClassifier",
    "SteinRegressor",
]
