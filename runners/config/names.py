"""Names of runs and of their folders."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from orbit.core.errors import ParameterError

# In bytes: names of files have at most 255, and a run's folder is named by its time too.
_LONGEST = 200
_LONGEST_DEFAULT = 60
_LONGEST_VALUE = 24

#: Environment variable with the keys that differ between the jobs of a sweep, separated by commas.
VARIED_ENV = "ORBIT_SWEEP_VARIES"

# Parameters of components that say where something is, not what.
_PLACES = re.compile(r"(dataset|encoder|runner)[.](\w*_)?(path|manifest|key|root|input|model)")

# All others have a meaning in a shell, a path or a setting of the command line.
_NOT_LEGAL = re.compile(r"[^A-Za-z0-9.+_-]+")


def default_name(parts: Iterable[str], overrides: Iterable[str], hidden: Collection[str], seed: int | None) -> str:
    """The parts, the values of the overrides, and the seed, which tell the jobs of a sweep apart.

    Paths, and keys of files, are left out, and in a job of a sweep what all its jobs have in common.

    Parameters
    ----------
    parts : iterable of str
    overrides : iterable of str
        As on the command line, ``approx.n_components=100``.
    hidden : collection of str
        Keys whose overrides are left out; ``tracking.`` is all keys of a section.
    seed : int or None
        None is left out.

    Examples
    --------
    >>> default_name(["digits", "rf"], ["approx.n_components=100", "learner=krr", "outputs=/tmp"], ["outputs"], 0)
    'digits-rf-n_components_100-krr-s0'
    """
    changes = [_change(override) for override in overrides if not _is_hidden(override, hidden)]
    name = "-".join(filter(None, [*parts, *changes]))
    # the seed may be out of range, which is reported later
    end = "" if seed is None else f"-s{_cut(str(seed), _LONGEST_VALUE)}"
    return _cut(name, _LONGEST_DEFAULT - len(end)) + end


def data_name(dataset: Mapping[str, Any]) -> str:
    """The data's own name: that of the file or folder that is read, else that of the data set.

    Parameters
    ----------
    dataset : mapping
        The section of the configuration.

    >>> data_name({"name": "table", "path": "/data/my wine.csv"}), data_name({"name": "digits"})
    ('my_wine', 'digits')
    >>> data_name({"name": "images", "path": None, "manifest": "/data/plants.csv"})
    'plants'
    """
    if not (path := dataset.get("path") or dataset.get("manifest")):
        return str(dataset["name"])
    place = Path(str(path)).absolute()
    own = _legal(place.name if os.path.isdir(place) else place.stem)
    return _cut(own, _LONGEST_VALUE) or _legal(place.parent.name) or str(dataset["name"])


def sweep_name(data: str, varied: Sequence[str], time: str) -> str:
    """The data of a sweep, the keys that differ between its jobs, and the time.

    Parameters
    ----------
    data : str
        Unless the data differ.
    varied : sequence of str
        Overrides in which the jobs differ.
    time : str

    >>> sweep_name("gunpoint", ["group=cyclic,identity", "orbit.size=8,16"], "10:09")
    'gunpoint group,size 10:09'
    """
    values = dict(map(split_override, varied))
    of_data = [key for key in ("dataset.path", "dataset", "experiment") if key in values]
    what = f"{values[of_data[0]].count(',') + 1} data sets" if of_data else data
    keys = ",".join(key.rpartition(".")[2] for key in values if key not in of_data)
    return " ".join(filter(None, [what, _cut(keys, _LONGEST_DEFAULT - len(f"{what}  {time}")), time]))


def given(overrides: Sequence[str]) -> list[str]:
    """The overrides as they were given. An interpolation in one belongs to its key, which reports it if it is wrong.

    >>> given(OmegaConf.create(["kernel.lengthscale=${nothing}"]))
    ['kernel.lengthscale=${nothing}']
    """
    texts: Any = OmegaConf.to_container(overrides, resolve=False)
    return list(texts)


def split_override(override: str) -> tuple[str, str]:
    """The key of an override, without the signs that add or delete one, and its value.

    >>> split_override("++kernel.lengthscale=2"), split_override("~selection.grid")
    (('kernel.lengthscale', '2'), ('selection.grid', ''))
    """
    key, _, value = override.lstrip("+~").partition("=")
    return key, value


def key_of(override: str) -> str:
    """The key of an override."""
    return split_override(override)[0]


def checked_run_name(name: str) -> str:
    """``name``, which is part of the name of a folder.

    Raises
    ------
    ParameterError
        If it is empty, too long, or has a slash, line breaks or other control characters.
    """
    if not (name.isprintable() and 0 < len(name.encode()) <= _LONGEST):
        raise ParameterError("run_name", f"1 to {_LONGEST} printable characters in one line", name)
    if "/" in name:
        raise ParameterError("run_name", "a name without /, as a part of a folder's name", name)
    return name


def new_folder(path: str) -> str:
    """Make a folder that no other run has: ``path`` or, if it exists, ``path-2`` and so on."""
    for name in itertools.chain([path], (f"{path}-{number}" for number in itertools.count(2))):
        try:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).mkdir()
        except FileExistsError:
            if Path(name).is_dir():
                continue
            break
        except OSError:
            break
        return name
    return path  # it cannot be made, which Hydra reports


# on import, because the workers of a launcher resolve the names of their run folders before they call anything
OmegaConf.register_new_resolver("orbit_new_folder", new_folder, replace=True, use_cache=True)
OmegaConf.register_new_resolver("orbit_checked", checked_run_name, replace=True)


def _is_hidden(override: str, hidden: Collection[str]) -> bool:
    key = key_of(override)
    section, dot, _ = key.partition(".")
    in_common = VARIED_ENV in os.environ and key not in os.environ[VARIED_ENV].split(",")
    return in_common or key in hidden or section + dot in hidden or _PLACES.fullmatch(key) is not None


def _change(override: str) -> str:
    """``n_components_100`` for the parameter of a component, ``krr`` for a component."""
    value = _cut(_legal(override.partition("=")[2]), _LONGEST_VALUE)
    _, dot, parameter = key_of(override).rpartition(".")
    if override.startswith("~"):
        return f"no_{parameter}"
    return f"{parameter}_{value}" if dot or value[:1].isdigit() else value


def _legal(text: str) -> str:
    return _NOT_LEGAL.sub("_", text).strip("_")


def _cut(text: str, longest: int) -> str:
    """``text`` or, if it is longer, its start with a digest of it."""
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{text[: longest - 7].rstrip('-_.')}.{digest}"
