"""Command lines and configuration files, and a part of the line that answers each, for tests/test_bad_input.py.

Most command lines are in ``bad_command_lines.txt``; here are those with characters or of lengths that it cannot show.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

FIELD = ("dataset=vector_field", "group=identity", "approx=orff", "learner=stein")
TABLE = ("dataset=table", "group=identity", "dataset.target=y")
PREDICT = ("runner=predict", "runner.model=there", "runner.input=here.csv")
LONG = "x" * 5000
LARGE = f"1{'0' * 400}"


def listed() -> Iterator[tuple[str, ...]]:
    """The cases of the text file: words as a shell takes them, and under them a part of each line that answers."""
    words: list[str] = []
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            yield *words, line[4:]
        elif line and not line.startswith("#"):
            words = shlex.split(line)


#: What is on the command line, and a part of the line.
COMMAND_LINES: list[tuple[str, ...]] = [
    *listed(),
    ("seed\n=3", "'seed\\n=3': expected KEY=VALUE"),
    *(
        (f"{key}={LARGE}", f"{key}: expected 0 or a number of size 1e-100 to 1e+100, found 1000")
        for key in ("approx.n_components", "seed", "kernel.lengthscale")
    ),
    (f"learner.regularization=[{LARGE}]", "learner.regularization: expected 0 or a number of size 1e-100 to"),
    *(
        (f"tracking.{key}='a\nb'", f"tracking.{key}: expected a name that is not empty, of printable characters in")
        for key in ("uri", "experiment", "artifacts")
    ),
    *(
        (f"run_name='{name}'", f"run_name: expected 1 to 200 printable characters in one line, found '{found}")
        for name, found in {"a\nb": "a\\nb'", "a\tb": "a\\tb'", "a\0b": "a\\x00b'"}.items()
    ),
    (f"run_name={'x' * 400}", "run_name: expected 1 to 200 printable characters in one line, found 'xxx"),
    *(
        (*more, f"{key}={LONG}", f"{key}: expected a path that can be read (File name too long), found 'xxxx")
        for key, *more in (
            ("dataset.root", "dataset=mnist"),
            ("dataset.root", "dataset=spoken_digits"),
            ("dataset.path", "dataset=arrays"),
            ("dataset.path", "dataset=images"),
            ("dataset.path", *TABLE),
            ("encoder.path", "encoder=onnx"),
            ("kernel.adjacency", *FIELD, "kernel=decomposable", "kernel.output=graph"),
            ("runner.input", *PREDICT[:2]),
            ("runner.output", *PREDICT),
        )
    ),
    (
        "dataset=arrays",
        "dataset.path='a\0b'",
        "dataset.path: expected a path that can be read (a null character), found",
    ),
    ("dataset=arrays", "dataset.path='a\nb.npz'", "a\\nb.npz, found none"),
]

GLOBAL = "# @package _global_\n"

#: Kind -> its first names. The names of some kinds are part of the name of a run, which Hydra needs first of all.
NO_NAME = {
    "kernel": "arccos, cdf",
    "group": "affine, amplitude, cyclic",
    "runner": "archive, budget, compare",
    "dataset": "arrays, cifar10",
    "approx": "cdf, exact",
    "distribution": "delta, gaussian",
    "frequencies": "auto, monte_carlo",
    "selection": "given, hold_out",
}

#: The content of an experiment file in a folder of ``--config-dir``, and a part of the line that answers it.
FILES: list[tuple[str | bytes, str]] = [
    ("a: [1\n b: {", "mine.yaml: expected YAML, found in line 2, column 3: expected ',' or ']', but got ':'"),
    (f"{GLOBAL}\tseed: 3", "mine.yaml: expected YAML, found in line 2, column 1: found character '\\t' that cannot"),
    (f"{GLOBAL}seed: 1\nseed: 2", "mine.yaml: expected YAML, found in line 3, column 1: found duplicate key seed"),
    (f"{GLOBAL}? [a, b]\n: 3", "mine.yaml: expected YAML, found in line 2, column 3: found unhashable key"),
    (f"{GLOBAL}seed: !foo 3", "could not determine a constructor for the tag '!foo'"),
    (f"{GLOBAL}seed: !!python/object/apply:os.system [ls]", "tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
    (b"\xff\xfe\0\xd8", "experiment/mine.yaml: 'utf-8' codec can't decode byte 0xff in position 0"),
    (f"{GLOBAL}seed: 1\0", "experiment/mine.yaml: unacceptable character #x0000"),
    (f"{GLOBAL}seed: 1{'0' * 5000}", "experiment/mine.yaml: Exceeds the limit (4300 digits)"),
    (f"{GLOBAL}a: {'[' * 2000}{']' * 2000}", "experiment/mine.yaml: it is too deep, or leads back to itself"),
    (f"{GLOBAL}a: &a [*a]", "experiment/mine.yaml: it is too deep, or leads back to itself"),
    (f"{GLOBAL}seed: *seed", "mine.yaml: expected YAML, found in line 2, column 7: found undefined alias 'seed'"),
    (f"{GLOBAL}defaults: [mine]", "experiment/mine.yaml: it is too deep, or leads back to itself"),
    (f"{GLOBAL}defaults: 3", "experiment/mine.yaml: Invalid defaults list in 'experiment/mine', defaults must"),
    (f"{GLOBAL}defaults: [3]", "experiment/mine.yaml: Unsupported type in defaults : int"),
    (f"{GLOBAL}defaults: [null]", "experiment/mine.yaml: Unsupported type in defaults : NoneType"),
    (f"{GLOBAL}defaults: [gone]", "In 'experiment/mine': Could not load 'experiment/gone'."),
    ("# @package\nseed: 3", "experiment/mine.yaml: Expected header format: KEY VALUE, got '@package'"),
    ("seed: 3", "experiment/mine.yaml: expected a first line '# @package _global_', because there is no key"),
    ("- a\n- b", "experiment/mine.yaml: expected a first line '# @package _global_'"),
    (f"{GLOBAL}grup: rotation", "experiment/mine.yaml: grup: no such key; did you mean 'group'?"),
    (f"{GLOBAL}kernel: {{lenght: 3}}", "experiment/mine.yaml: kernel.lenght: no such key. Choose from name"),
    (f"{GLOBAL}seed: [1]", "experiment/mine.yaml: seed: expected an integer >= 0, found [1]"),
    *(
        (
            f"{GLOBAL}{kind}: {value}",
            f"experiment/mine.yaml: {kind}: expected settings KEY: VALUE, found {shown}; a choice is an entry "
            f"'- override /{kind}: NAME' of the defaults list",
        )
        for kind, value, shown in (
            ("dataset", "digits", "'digits'"),
            ("kernel", "[1]", "[1]"),
            ("runner", "3", "3"),
            ("group", "true", "True"),
        )
    ),
    *(
        (f"{GLOBAL}{section}: {value}", f"experiment/mine.yaml: {section}: expected settings KEY: VALUE, found {shown}")
        for section, value, shown in (("orbit", "3", "3"), ("engine", "[1]", "[1]"), ("tracking", "mine", "'mine'"))
    ),
    *(
        (f"{GLOBAL}{kind}: null", f"{kind}: expected {{name: NAME}} with a NAME of {first}")
        for kind, first in NO_NAME.items()
    ),
    *(
        (f"{GLOBAL}{section}: null", f"{section}: expected settings {section}.KEY=VALUE, found null")
        for section in ("orbit", "engine", "tracking")
    ),
    (f"{GLOBAL}kernel: {{name: null}}", "experiment/mine.yaml: kernel.name: Incompatible value 'None' for"),
    (
        f"{GLOBAL}kernel: {{lengthscale: .nan}}",
        "kernel.lengthscale: expected a finite number > 0 or one of 'auto', 'evidence', 'ard', 'median', found nan",
    ),
    (f"{GLOBAL}x: {{_target_: os.system}}", "mine.yaml: the key '_target_' names code to run"),
]
