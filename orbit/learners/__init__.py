"""Learners on features: scikit-learn classifiers and regressors, registered by task."""

from orbit.learners.adagrad import AdaGradClassifier as AdaGradClassifier, AdaGradRegressor as AdaGradRegressor
from orbit.learners.cg import CGRegressor as CGRegressor
from orbit.learners.forces import ForceField as ForceField
from orbit.learners.gp import GaussianProcess as GaussianProcess
from orbit.learners.krr import KernelRidgeRegressor as KernelRidgeRegressor
from orbit.learners.logistic import LogisticClassifier as LogisticClassifier
from orbit.learners.neighbors import (
    NeighborsClassifier as NeighborsClassifier,
    NeighborsRegressor as NeighborsRegressor,
)
from orbit.learners.network import NetworkClassifier as NetworkClassifier
from orbit.learners.ridge import RidgeClassifier as RidgeClassifier, RidgeRegressor as RidgeRegressor
from orbit.learners.stein import SteinClassifier as SteinClassifier, SteinRegressor as SteinRegressor
from orbit.learners.svm import (
    KernelSVMClassifier as KernelSVMClassifier,
    KernelSVMRegressor as KernelSVMRegressor,
    SVMClassifier as SVMClassifier,
)
