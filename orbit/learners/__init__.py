"""Learners on features: scikit-learn classifiers and regressors, registered by task."""

from orbit.learners.adagrad import AdaGradClassifier, AdaGradRegressor
from orbit.learners.cg import CGRegressor
from orbit.learners.gp import GaussianProcess
from orbit.learners.krr import KernelRidgeRegressor
from orbit.learners.logistic import LogisticClassifier
from orbit.learners.neighbors import NeighborsClassifier, NeighborsRegressor
from orbit.learners.network import NetworkClassifier
from orbit.learners.ridge import RidgeClassifier, RidgeRegressor
from orbit.learners.stein import SteinClassifier, SteinRegressor
from orbit.learners.svm import KernelSVMClassifier, KernelSVMRegressor, SVMClassifier

__all__ = [
    "AdaGradClassifier",
    "AdaGradRegressor",
    "CGRegressor",
    "GaussianProcess",
    "KernelRidgeRegressor",
    "KernelSVMClassifier",
    "KernelSVMRegressor",
    "LogisticClassifier",
    "NeighborsClassifier",
    "NeighborsRegressor",
    "NetworkClassifier",
    "RidgeClassifier",
    "RidgeRegressor",
    "SVMClassifier",
    "SteinClassifier",
    "SteinRegressor",
]
