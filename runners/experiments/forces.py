"""runner=forces: energies and forces of molecules, learned together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.models import load_model, save
from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt
from orbit.core.paths import user_path
from orbit.data.molecule_files import frames_text
from orbit.data.molecules import Frames, Molecules
from orbit.learners.forces import ForceField
from orbit.plots.axes import row_of_axes
from orbit.registry import register
from runners.job.job import Job
from runners.job.runner import Runner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MODEL, _FILE = "force_field", "predictions.extxyz"


@register("runner", "forces")
@dataclass(eq=False, repr=False)
class Forces(Runner):
    """Learns energies and forces of molecules together, for ``dataset=molecules``, whose ``target`` is the energy.

    The model is :class:`~orbit.learners.forces.ForceField`; representation, group, kernel, features and learner of the
    configuration are not used. ``predictions.extxyz`` has the test frames with predicted energies and forces, and it
    and the errors have the units of the file.

    Parameters
    ----------
    forces : str
        The name of the forces in the file.
    per : {"angstrom", "bohr"} or None
        Forces are in the unit of energies per this one, such as bohr for hartree/bohr; None is ``dataset.unit``.
    n_components, lengthscale, regularization, energy_weight, distances
        As of :class:`~orbit.learners.forces.ForceField`.
    model : str or None
        The run folder of an earlier ``runner=forces``, whose model predicts all frames of ``dataset.path``, which need
        no energies; None fits one.
    trust : bool
        Load a model from elsewhere, and with it run the code in it.
    """

    takes_group: ClassVar[bool] = False

    forces: str = "forces"
    per: Literal["angstrom", "bohr"] | None = None
    n_components: PositiveInt = 3000
    lengthscale: PositiveFloat = 10.0
    regularization: PositiveFloat | None = None
    energy_weight: PositiveFloat = 5.0
    distances: NonNegativeFloat = 10.0
    model: str | None = None
    trust: bool = False

    def run(self, job: Job) -> None:
        loader = job.plan.component("dataset")
        if not isinstance(loader, Molecules):
            raise InputError(f"dataset: runner=forces takes dataset=molecules, found {loader.label()}")
        with job.stage("load"):
            name = self.forces if self.model is None else None
            frames = loader.load_frames(job.plan.seed("dataset"), name, self.per)
        counts = f"{len(frames.train)} training and {len(frames.test)} test"
        if self.model is not None:
            counts = f"{len(frames.test)}"
        job.row("data", f"{counts} frames, {(frames.X[:, :, 0] > 0).sum(1).max()} atoms")
        model = self._fitted(job, frames)
        if model.distances_ is not None:
            job.row("distances", f"of one molecule, over {len(model.distances_.molecule.permutations)} permutations")
        with job.stage("predict"):
            energies, forces = model.predict(frames.X[frames.test])
        in_file = frames.X[frames.test] / [1, *3 * [frames.length]]
        job.log_text(_FILE, frames_text(in_file, energies, forces * frames.per))
        self._score(job, frames, energies, forces)
        times = {name: job.metrics.get(f"time/{name}_s", 0.0) for name in ("fit", "predict")}
        job.row("time", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items() if seconds))
        job.row("predictions", str((job.folder.path / _FILE).absolute()))

    def _fitted(self, job: Job, frames: Frames) -> ForceField:
        if self.model is not None:
            place = user_path(self.model, "runner.model") / _MODEL
            found = load_model(place, self.trust, "runner.model", "runner.trust=true")
            if not isinstance(found, ForceField):
                raise InputError(f"runner.model: expected the folder of a run of runner=forces, found {self.model}")
            return found
        assert frames.energies is not None
        assert frames.forces is not None
        model = ForceField(
            self.n_components,
            self.lengthscale,
            self.regularization,
            self.energy_weight,
            self.distances,
            random_state=job.plan.seed("learner"),
        )
        train, shown = frames.train, job.plan.config["engine"]["progress"]
        with job.stage("fit"):
            model.fit(frames.X[train], frames.energies[train], frames.forces[train], progress=shown)
        save(model, job.folder.path / _MODEL)
        return model

    def _score(self, job: Job, frames: Frames, energies: np.ndarray, forces: np.ndarray) -> None:
        """Errors of energies and of the components of forces, beside those of their training mean and of zero."""
        if frames.energies is None or frames.forces is None:
            return
        is_atom = frames.X[frames.test][:, :, 0] > 0
        pulls = frames.forces[frames.test][is_atom].ravel()
        true = {"energy": frames.energies[frames.test], "forces": frames.per * pulls}
        found = {"energy": energies, "forces": frames.per * forces[is_atom].ravel()}
        plain = {"energy": frames.energies[frames.train].mean(), "forces": 0.0}
        for name, values in true.items():
            errors = found[name] - values
            scores = {"mae": float(np.abs(errors).mean()), "rmse": float(np.sqrt(np.square(errors).mean()))}
            job.log_metrics({f"test/{name}/{key}": value for key, value in scores.items()})
            beside = float(np.abs(values - plain[name]).mean())
            job.row(
                f"test {name}", f"mae {scores['mae']:.4g}, rmse {scores['rmse']:.4g}, mae of a constant {beside:.4g}"
            )
        job.log_figure("predicted", _against_true, true, found)


def _against_true(true: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> Figure:
    figure, axes = row_of_axes(len(true), 4.2, 4.0)
    for ax, (name, values) in zip(axes, true.items(), strict=True):
        plots.predicted_against_true(values, found[name], ax=ax)
        ax.set_title(f"{name}, mean absolute error {np.abs(values - found[name]).mean():.3g}", fontsize=10)
    return figure
