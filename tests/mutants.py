"""Mutation testing of packages of the library by Cosmic Ray, on a copy of the working tree.

    pip install cosmic-ray==8.7.0
    python tests/mutants.py                      # a sample of 30 mutants of each package
    python tests/mutants.py kernels --sample 200 --seed 1
    python tests/mutants.py --survivors          # the survivors of the last run again, by the tests as they are

A mutant is a module with one changed operator, number, comparison, condition, loop, decorator or handler of exceptions.
At most one is drawn of each place in the code. Left out are operators between bits, whose mutants are rarely anything
but an error of type, and ``|``, which is mostly in unions of types. A mutant that no test kills is shown with its
difference. The sessions in ``outputs/mutants`` are those of Cosmic Ray, which ``cr-report`` reads.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "outputs" / "mutants"

#: Package -> its modules, and the tests of them, those that find most first.
PACKAGES = {
    "groups": (["orbit/groups"], ["tests/groups", "orbit/groups", "tests/distributions"]),
    "orbits": (
        ["orbit/orbits.py"],
        ["tests/test_orbits.py", "orbit/orbits.py", "tests/core/test_memory.py", "tests/test_orbit_rules.py"],
    ),
    "distributions": (["orbit/distributions"], ["tests/distributions", "orbit/distributions"]),
    "kernels": (["orbit/kernels"], ["tests/kernels", "orbit/kernels", "tests/approx/test_cdf.py"]),
}

#: Imported once: each mutant is tested by a fork, which imports the library and its tests only.
LIBRARIES = ("hypothesis", "numba", "pandas", "pytest", "scipy.stats", "sklearn.utils.estimator_checks", "torch")

_LEFT_OUT = re.compile(r"BinaryOperator_BitOr_|_(RShift|LShift|BitOr|BitAnd|BitXor|Invert)$")
_COPIED = ("conf", "orbit", "runners", "papers", "benchmarks", "orbit_benchmarks.dist-info", "tests", "pyproject.toml")


def copy_tree(work: Path) -> None:
    """A copy of the working tree, where mutants are written, compiled so that a changed module is noticed at once."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, work / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, work / name)
    compiled = ("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "orbit", "runners")
    subprocess.run([sys.executable, *compiled], cwd=work, check=True)


def passes(tests: list[str], limit_s: float) -> bool:
    """Whether all tests pass within the time, in a fork of this process that ends with the first that fails."""
    child = os.fork()
    if child == 0:
        os.setsid()
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os._exit(importlib.import_module("pytest").main(["-x", "-n", "0", "-p", "no:cacheprovider", *tests]))
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def draw(db: Any, modules: list[str], size: int, seed: int) -> list[Any]:
    """Fill a session with the mutants of the modules; all but ``size`` random ones, which are returned, are skipped."""
    from cosmic_ray.commands import init
    from cosmic_ray.modules import find_modules
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    init(sorted(find_modules([Path(module) for module in modules])), db, {})
    mutants = {}
    for item in db.work_items:
        (mutant,) = item.mutations
        mutants[str(mutant.module_path), mutant.operator_name, mutant.occurrence] = item
    places: dict[Any, Any] = {}
    keys = sorted(key for key in mutants if not _LEFT_OUT.search(key[1]))
    random.Random(seed).shuffle(keys)
    for key in keys:
        places.setdefault((key[0], mutants[key].mutations[0].start_pos), mutants[key])
    drawn = list(places.values())[:size]
    print(f"  {len(keys)} mutants at {len(places)} places, {len(drawn)} drawn", flush=True)
    others = {item.job_id for item in db.work_items} - {item.job_id for item in drawn}
    db.set_multiple_results(others, WorkResult(WorkerOutcome.SKIPPED))
    return drawn


def forget_survivors(session: Path) -> None:
    """Make the survivors of a session pending again."""
    with contextlib.closing(sqlite3.connect(session)) as connection, connection:
        connection.execute("DELETE FROM work_results WHERE test_outcome = 'SURVIVED'")


def result_of(mutant: Any, tests: list[str], limit_s: float) -> Any:
    """The outcome of the tests of a mutant, and its difference from the code."""
    from cosmic_ray.mutating import use_mutation
    from cosmic_ray.plugins import get_operator
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

    operator = get_operator(mutant.operator_name)()
    with use_mutation(mutant.module_path, operator, mutant.occurrence) as (before, after):
        outcome = TestOutcome.SURVIVED if passes(tests, limit_s) else TestOutcome.KILLED
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(mutant.module_path), "", n=0, lineterm="")
    return WorkResult(WorkerOutcome.NORMAL, None, outcome, "\n".join(lines))


def run_mutants(name: str, size: int, seed: int, survivors: bool) -> None:
    """Draw mutants of a package, or take the survivors of the session, test them, and print the score."""
    from cosmic_ray.work_db import use_db
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome

    modules, tests = PACKAGES[name]
    print(f"{name}:", flush=True)
    begin = time.monotonic()
    sys.dont_write_bytecode = False  # the compiled tests are kept
    if not passes(tests, 3600):
        raise SystemExit(f"{' '.join(tests)}: fail without a mutant")
    seconds = time.monotonic() - begin
    sys.dont_write_bytecode = True
    print(f"  {seconds:.0f} s for the tests without a mutant", flush=True)
    session = FOLDER / f"{name}.sqlite"
    if survivors:
        forget_survivors(session)
    else:
        session.unlink(missing_ok=True)
    with use_db(session) as db:
        for item in db.pending_work_items if survivors else draw(db, modules, size, seed):
            result = result_of(item.mutations[0], tests, 30 + 5 * seconds)
            db.set_result(item.job_id, result)
            if result.test_outcome == TestOutcome.SURVIVED:
                print(result.diff, flush=True)
        results = [result for _, result in db.results if result.worker_outcome != WorkerOutcome.SKIPPED]
    killed = sum(result.test_outcome == TestOutcome.KILLED for result in results)
    print(f"  {name}: {killed} of {len(results)} killed, in {time.monotonic() - begin:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", choices=[*PACKAGES, []], help="all if none is given")
    parser.add_argument("--sample", type=int, default=30, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--survivors", action="store_true", help="test the survivors of the last run again")
    given = parser.parse_args()
    for library in LIBRARIES:
        importlib.import_module(library)
    for name in given.packages or PACKAGES:
        work = FOLDER / name
        copy_tree(work)
        sys.path[0] = str(work)
        with contextlib.chdir(work):
            run_mutants(name, given.sample, given.seed, given.survivors)


if __name__ == "__main__":
    main()
