"""Command lines and a part of the line that answers each, for tests/test_bad_input.py."""

from __future__ import annotations

FIELD = ("dataset=vector_field", "group=identity", "approx=orff", "learner=stein")
TABLE = ("dataset=table", "group=identity", "dataset.target=y")
PREDICT = ("runner=predict", "runner.model=there", "runner.input=here.csv")
LONG = "x" * 5000
TOO_LONG = "expected a path that can be read (File name too long), found 'xxxx"
SETTINGS = "expected KEY=VALUE"


def wrong(key: str, expected: str, *values: str) -> list[tuple[str, str]]:
    """Wrong values of a key, each as ``VALUE``, or ``VALUE -> FOUND`` if the line shows it in another way."""
    pairs = [value.partition(" -> ") for value in values]
    return [(f"{key}={value}", f"{key}: expected {expected}, found {found or value}") for value, _, found in pairs]


#: What is on the command line, and a part of the line.
COMMAND_LINES: list[tuple[str, ...]] = [
    # ---- names
    ("group=rotaton", "group=rotaton: no such group; did you mean 'rotation'? Choose from affine, amplitude, cyclic"),
    *(
        (f"{kind}={found}", f"{kind}={found}: no such {kind}; did you mean '{meant}'?")
        for kind, found, meant in (
            ("learner", "rigde", "ridge"),
            ("approx", "nystroem", "nystrom"),
            ("kernel", "gausian", "gaussian"),
            ("dataset", "mnsit", "mnist"),
            ("distribution", "har", "haar"),
            ("encoder", "patch", "patches"),
            ("experiment", "qm8", "qm7"),
        )
    ),
    ("runner.name=fti", "runner=fti: no such runner; did you mean 'fit'?"),
    ("kernel.name=null", "kernel.name: field 'kernel.name' is not Optional"),
    ("++kernel.name=3", "kernel=3: no such kernel. Choose from arccos"),
    ("architecture=conv", "architecture=conv: no such architecture"),
    ("size=huge", "size=huge: no such size. Choose from middle, paper, small."),
    ("experiment=xperm", "size=middle", "size=middle: experiment=xperm has no such size. Choose from paper, small."),
    ("group=", "group=: no such group"),
    *wrong("group", "a name", "3 -> 3; write group=NAME", "null -> null; write group=NAME", "3,rotation -> 3"),
    *wrong("kernel", "a name", "null -> null; write kernel=NAME"),
    *wrong("size", "a name", "null -> null; write size=NAME"),
    *wrong("experiment", "a name", "null"),
    *wrong("dataset", "a name", "true -> True"),
    *wrong("hydra", "a name", "3"),
    *wrong("schema", "a name", "3"),
    ("hydra.mode=MULTIRUN", "hydra/launcher=null", "hydra/launcher: expected a name, found null"),
    ("hydra.mode=MULTIRUN", "hydra/launcher=foo", "hydra/launcher=foo: no such hydra/launcher. Choose from basic, job"),
    ("hydra/launcher=joblib", "hydra/launcher=joblib: is for a sweep, which is started with -m"),
    ("hydra/sweeper=optuna", "hydra/sweeper=optuna: is for a sweep, which is started with -m"),
    # ---- numbers that the precision of the engine does not have
    *(
        (*more, f"kernel.lengthscale={value}", f"kernel.lengthscale: expected a number between {between}")
        for value, between, *more in (
            (1e-30, "1.2e-18 and 6.5e+18 in float32 (engine.dtype), found 1e-30"),
            (1e30, "1.2e-18 and 6.5e+18 in float32 (engine.dtype), found 1e+30"),
            (1e-30, "1.2e-18 and 6.5e+18 in float32", "approx=rf"),
            (1e-36, "3.0e-36 and 8.5e+37 in float32", "kernel=laplacian"),
            (1e-18, "3.0e-18 and 1.6e+19 in float32", "kernel=matern"),
            (1e-18, "3.9e-18 and 2.1e+19 in float32", "kernel=rational_quadratic", "kernel.alpha=0.1"),
            (1e-30, "1.2e-18 and 6.5e+18 in float32", *FIELD, "kernel=curl_free"),
        )
    ),
    (
        *(*FIELD, "kernel=curl_free", "kernel.base={name: gaussian, lengthscale: 1e30}"),
        "kernel.base.lengthscale: expected a number between 1.2e-18 and 6.5e+18 in float32",
    ),
    ("hyper=gaussian", "hyper.lengthscale=1e-30", "hyper.lengthscale: expected a number between 1.2e-18 and 6.5e"),
    ("kernel=polynomial", "kernel.gamma=1e40", "kernel.gamma: expected a number up to 3.3e+35 in float32 (engine"),
    ("kernel=polynomial", "kernel.coef0=1e20", "kernel.coef0: expected a number up to 6.9e+11 in float32 (engine"),
    # ---- keys that do not exist, however they are spelt
    ("grup=rotation", "grup: no such key; did you mean 'group'?"),
    ("Group=rotation", "Group: no such key; did you mean 'group'?"),
    *(
        (f"{key}=red", f"{key.strip('+').split('.')[0]}: no such key")
        for key in ("+colour", "++colour", "a.b.c", "+a.b")
    ),
    ("++foo.bar=1", "foo: no such key"),
    ("+approx.width=3", "approx=nystrom has no parameter 'width'"),
    ("++approx.width=3", "approx=nystrom has no parameter 'width'"),
    ("dataset.rot=here", "dataset.rot: no such key; did you mean 'root'?"),
    ("approx.n_componets=3", "approx.n_componets: no such key; did you mean 'n_components'?"),
    ("kernel.radius=-1", "kernel.radius: no such key. Choose from name, lengthscale."),
    ("group.a.b=c", "group.a: no such key"),
    ("group.sampling=polar", "group.sampling: no such key of group=auto; choose a group, group=NAME"),
    ("representation.radii=3", "representation.radii: no such key of representation=auto; choose a representation,"),
    *((f"{plus}engine.mem=1", "engine.mem: no such key; did you mean 'memory'?") for plus in ("", "+")),
    ("++engine.mem=1", "engine.mem: no such key; did you mean 'memory'? Choose from memory, workers"),
    *((f"{plus}orbit.sizes=3", "orbit.sizes: no such key; did you mean 'size'?") for plus in ("", "+", "++")),
    ("++orbit.sizes=3", "Choose from size, rule, random_phase."),
    ("tracking.url=x", "tracking.url: no such key; did you mean 'uri'?"),
    ("++tracking.url=x", "tracking.url: no such key; did you mean 'uri'? Choose from enabled, uri, experiment"),
    *((f"++{kind}.foo=1", f"{kind}=") for kind in ("dataset", "group", "kernel", "hyper", "landmarks")),
    ("++learner.foo=1", "learner=ridge has no parameter 'foo'"),
    ("++runner.foo=1", "runner=fit has no parameter 'foo'. It has save_model"),
    ("hydra.foo=1", "hydra.foo: no such key"),
    ("kernel.rank.a=1", "kernel.rank: no such key"),
    ("learner.regularization.0=3", "learner.regularization.0: no such key."),
    # ---- sections and settings that every run has
    *((f"~{key}", f"{key}: expected settings {key}.KEY=VALUE, found null") for key in ("orbit", "tracking", "engine")),
    ("~kernel", "kernel: expected a name, found null; write kernel=NAME"),
    ("~kernel.lengthscale", "kernel.lengthscale: gaussian (DictConfig) does not support deletion"),
    *wrong("tracking", "settings tracking.KEY=VALUE", "3", "null"),
    *wrong("engine", "settings engine.KEY=VALUE", "3", "null"),
    *wrong("orbit", "settings orbit.KEY=VALUE", "null"),
    ("orbit=[]", "orbit: Cannot merge DictConfig with ListConfig"),
    ("+kernel=laplacian", "Multiple values for kernel"),
    ("++kernel=3", "kernel: expected a name, found 3"),
    ("+seed=3", "An item is already at 'seed'"),
    # ---- arguments
    ("=3", "=3: expected KEY=VALUE, found no key"),
    ("+=3", "+=3: expected KEY=VALUE, found no key"),
    ("seed\n=3", f"'seed\\n=3': {SETTINGS}"),
    *((text, f"'{text}': {SETTINGS}") for text in ("seed:3", "", "approx.n_components", "a=b=c", "group..a=1")),
    (".group=1", f"'.group=1': {SETTINGS}"),
    ("group", f"'group': {SETTINGS}; values with spaces"),
    ("kernel.lengthscale='", SETTINGS),
    ("kernel.lengthscale=${seed", SETTINGS),
    ("kernel.lengthscale=${foo}", "kernel.lengthscale: Interpolation key 'foo' not found"),
    ("kernel.lengthscale=${oc.env:ORBIT_NOT_SET}", "Environment variable 'ORBIT_NOT_SET' not found"),
    # ---- numbers
    *wrong("approx.n_components", "an integer >= 1", "many -> 'many'", "0", "1e3 -> 1000.0", "1.0", "true -> True"),
    *wrong("approx.n_components", "an integer >= 1", "null", "[1]", "{a: 1} -> {'a': 1}"),
    *wrong("orbit.size", "an integer >= 1 or null", "-4", "2.5"),
    *wrong("dataset.n_train", "an integer >= 1 or null", "0"),
    *wrong("engine.workers", "an integer >= 1 or null", "0"),
    *wrong("seed", "an integer >= 0", "-1", "one -> 'one'", "1.5", "null", "[1]"),
    ("++seed.a=1", "seed: expected an integer >= 0, found {}"),
    *(
        (f"{key}=1{'0' * 400}", f"{key}: expected 0 or a number of size 1e-100 to 1e+100, found 1000")
        for key in ("approx.n_components", "seed", "kernel.lengthscale")
    ),
    (f"learner.regularization=[1{'0' * 400}]", "learner.regularization: expected 0 or a number of size 1e-100 to"),
    *wrong("engine.memory", "a finite number > 0 and <= 1e+06", "0", "much -> 'much'"),
    *wrong("engine.spectral_tolerance", "a finite number >= 0 or null", "-1"),
    *wrong(
        "kernel.lengthscale",
        "a finite number > 0 or one of 'auto', 'evidence', 'ard', 'median'",
        "big -> 'big'",
        " -> ''",
        "0",
        "nan",
        "inf",
    ),
    *wrong(
        "kernel.lengthscale",
        "a finite number > 0 or one of 'auto', 'evidence', 'ard', 'median'",
        "1e400 -> inf",
        "null",
        "true -> True",
        "[1]",
    ),
    ("learner.regularization=[1,-1]", "learner.regularization: expected a finite number > 0 or a list"),
    ("learner.regularization={a: 1}", "learner.regularization: expected a finite number > 0 or a list"),
    *(
        (*more, f"learner.{key}=[]", f"learner.{key}: expected at least one value, found []")
        for key, *more in (
            ("regularization",),
            ("regularization", "learner=svm"),
            ("learning_rate", "learner=adagrad"),
            ("learning_rate", "learner=network", "approx=points"),
            ("noise", *FIELD[:2], "learner=gp"),
        )
    ),
    ("distribution=uniform", "distribution.high=-30", "distribution.high: expected a number > distribution.low=-20"),
    # ---- true and false, names, texts
    *wrong("orbit.random_phase", "true or false", "2", "1", "yes -> 'yes'"),
    *wrong("engine.stream", "true or false", "1"),
    *wrong("resume", "true or false", "2", "maybe -> 'maybe'"),
    *wrong("runner.save_model", "true or false", "0"),
    *wrong("tracking.enabled", "true or false", "2", "null -> None"),
    *(
        (f"tracking.{key}='{value}'", f"tracking.{key}: expected a name that is not empty, of printable characters in")
        for key in ("uri", "experiment", "artifacts")
        for value in ("", " ", "a\nb")
    ),
    *(
        (f"tracking.uri={uri}", "tracking.uri: expected a URI without a password, found one; give it by PGPASSWORD or")
        for uri in (
            "postgresql://ann:pa55@host:5432/runs",
            "postgresql+psycopg2://ann:p@a/55@host/runs",
            "'postgresql://ann:pa 55@host/runs'",
            "'postgresql://host/runs?user=ann&sslpassword=pa55'",
            "https://ghp_55@host",
        )
    ),
    *wrong("tracking.experiment", "a string", "null", "[1]"),
    *wrong("outputs", "the name of a folder", "null", " -> ''", "' '"),
    ("outputs=[a]", "outputs: expected a string, found ['a']"),
    *(
        (f"run_name='{name}'", f"run_name: expected 1 to 200 printable characters in one line, found '{found}")
        for name, found in {"a\nb": "a\\nb'", "a\tb": "a\\tb'", "a\0b": "a\\x00b'", "": "'", "ü" * 101: "üüü"}.items()
    ),
    (f"run_name={'x' * 400}", "run_name: expected 1 to 200 printable characters in one line, found 'xxx"),
    ("run_name=a/b", "run_name: expected a name without /"),
    *wrong("orbit.rule", "one of 'monte_carlo', 'qmc', 'quadrature' or null", "simpson -> 'simpson'"),
    *wrong("engine.path", "one of 'auto', 'direct', 'template', 'spectral'", "fast -> 'fast'"),
    *wrong("engine.device", "one of 'auto', 'cpu', 'cuda'", "tpu -> 'tpu'"),
    *wrong("engine.progress", "true or false", "1"),
    *wrong("engine.dtype", "one of 'auto', 'float32', 'float64'", "float16 -> 'float16'"),
    ("representation=unit_norm", "representation.norm=tall", "representation.norm: expected one of"),
    # ---- components that do not go together
    (*FIELD, "kernel=curl_free", "kernel.base=polynomial", "base: kernel=polynomial is not shift invariant"),
    (*FIELD, "kernel=curl_free", "kernel.base={name: matern, nu: -1}", "kernel.base.nu: expected"),
    (*FIELD, "kernel=decomposable", "kernel.output=simplex", "kernel.output=simplex is for classes"),
    (*FIELD, "kernel=decomposable", "hyper=gaussian", "hyper=gaussian mixes the features of approx=orff"),
    (*FIELD[:3], "kernel=curl_free", "learner=knn", "learner=knn cannot use the operator-valued features"),
    ("learner=gp", "learner=gp is not for classification, which dataset=rotated_digits needs: choose from"),
    ("learner=lasso", "learner=lasso: no such learner"),
    ("kernel=curl_free", "kernel=curl_free is operator-valued, approx=nystrom is not: choose approx=orff"),
    ("approx=skeleton", "encoder=patches", "approx=skeleton takes no encoder, found encoder=patches"),
    ("engine.stream=true", "learner=svm", "the learner 'svm' needs all features at once"),
    ("learner=network", "learner=network computes its own features, found approx=nystrom"),
    ("augmentation=image", "augmentation=image changes points in every pass over them: set engine.stream=true"),
    ("augmentation=image", "engine.stream=true", "augmentation=image: learner=ridge makes only one pass"),
    ("selection=k_fold", "selection.grid: selection=k_fold needs keys with values"),
    *(
        ("selection=k_fold", f"selection.grid={grid}", message)
        for grid, message in (
            ("{dataset.n_train: [3]}", "dataset.n_train cannot be selected"),
            ("{1: [3]}", "selection.grid: expected configuration keys, each with a list of"),
            ("{kernel: [laplacian]}", "kernel: expected {name: NAME} with a NAME of arccos"),
            ("{kernel.lengthscale: [-1]}", "kernel.lengthscale: expected"),
            ("{kernel.lengthscale: 1}", "selection.grid.kernel.lengthscale: expected"),
            ("{kernel.lengthscal: [1]}", "did you mean 'lengthscale'"),
            ("{kernl.lengthscale: [1]}", "did you mean 'kernel'"),
        )
    ),
    ("approx=cdf", "kernel=cdf", "kernel.radius=-1", "kernel.radius: expected a finite number > 0 or 'max', found -1"),
    (
        "approx=cdf",
        "kernel.lengthscale=-1",
        "kernel.lengthscale: expected a finite number > 0 or one of 'auto', 'evidence', 'ard', 'median', found -1",
    ),
    (*TABLE, "dataset.path=here.csv", "learner.regularization=-1", "learner.regularization: expected"),
    # ---- files
    ("dataset=mnist", "dataset.root=nowhere", "expected the file train-images-idx3-ubyte.gz at"),
    ("dataset=mnist", "dataset.root=nowhere", "that has it, or fetch it with dataset.download=true."),
    *(
        (*more, f"{key}={LONG}", f"{key}: {TOO_LONG}")
        for key, *more in (
            ("dataset.root", "dataset=mnist"),
            ("dataset.root", "dataset=spoken_digits"),
            ("dataset.path", "dataset=arrays"),
            ("dataset.path", "dataset=images"),
            ("dataset.path", *TABLE),
            ("encoder.path", "encoder=onnx"),
            ("kernel.adjacency", *FIELD, "kernel=decomposable", "kernel.output=graph"),
            ("runner.input", "runner=predict", "runner.model=there"),
            ("runner.output", *PREDICT),
        )
    ),
    ("dataset=cifar10", "dataset.root='~nobody-here'", "dataset.root: expected a path that can be read (Could not"),
    ("dataset=arrays", "dataset.path: expected the path of an .npz or .npy file, found none"),
    ("dataset=arrays", "dataset.path=gone.npz", "dataset.path: expected a file at"),
    ("dataset=arrays", "dataset.path='a\0b'", "dataset.path: expected a path that can be read (embedded null byte)"),
    ("dataset=arrays", "dataset.path=.", "found a folder"),
    ("dataset=arrays", "dataset.path='a\nb.npz'", "a\\nb.npz, found none"),
    ("dataset=images", "dataset.path: expected a folder with a folder of pictures for each class, found none"),
    ("dataset=images", "dataset.path=gone", "dataset.path: expected a folder at"),
    (
        "dataset=images",
        "dataset.resize=[8]",
        "dataset.resize: expected [height, width] in pixels, or one number for all, found [8]",
    ),
    ("dataset=images", "dataset.resize=[8,0]", "dataset.resize: expected an integer >= 1 or a list, each item"),
    ("dataset=table", "dataset.path: expected the path of a .csv or .parquet file, found none"),
    ("dataset=table", "dataset.path=x.csv", "dataset.target: expected the name of the column to predict, found none"),
    (*TABLE, "dataset.path=gone.csv", "dataset.path: expected a file at"),
    (*TABLE, "dataset.path=here.csv", "dataset.test_path=gone.csv", "dataset.test_path: expected a file at"),
    (*TABLE, "dataset.features=[]", "dataset.features: expected at least one column, or null for all columns"),
    (*TABLE, "dataset.features=[a,a]", "dataset.features: expected columns named once each, found ['a', 'a']"),
    (*TABLE, "dataset.target=[a,a]", "dataset.target: expected columns named once each, found ['a', 'a']"),
    (*TABLE, "dataset.weight=y", "dataset.weight: expected another column than the target, found 'y'"),
    ("encoder=onnx", "encoder.path=gone.onnx", "encoder.path: expected the path of a network (.onnx file)"),
    (
        *(*FIELD, "kernel=decomposable", "kernel.output=graph", "kernel.adjacency=gone.npy"),
        "kernel.adjacency: expected an .npy file at gone.npy, found none",
    ),
    ("runner=predict", "runner.model: expected the folder of a run, or runs:/ID/model, found None"),
    *(
        (*PREDICT[:2], *more, "runner.input: expected an existing file or folder with new points")
        for more in ((), ("runner.input=gone",))
    ),
    *(
        (*PREDICT, f"runner.output={path}", f"runner.output: expected a file in an existing folder, found '{path}'")
        for path in ("gone/x.csv", "", "/", ".", "/dev/null")
    ),
    (
        *PREDICT,
        "runner.output=./here.csv",
        "runner.output: expected another file than runner.input, found './here.csv'",
    ),
    # ---- sections with labels and changes, and lists
    *(
        ("runner=memory", f"runner.cases={cases}", "runner.cases: expected")
        for cases in ("null", "{a: 3}", "{a: {points: 0}}", "{a: {points: some}}", "{a: {points: true}}")
    ),
    *(
        (f"runner={runner}", *settings, message)
        for runner, *settings, message in (
            ("timing", "runner.sweep={N: [8, true]}", "runner.sweep: expected lists of integers >= 1 for any of"),
            ("timing", "runner.sweep={N: [8, true]}", "side, D, found N: [8, True]"),
            ("invariance", "runner.cases={a: 3}", "runner.cases.a: expected settings, found 3"),
            ("invariance", "runner.cases={a: {moves: 3}}", "runner.cases.a.moves: expected settings of orbit"),
            ("invariance", "runner.cases={a: {moves: {siz: 3}}}", "siz"),
            ("invariance", "runner.cases={a: {shape: x}}", "runner.cases.a.shape: expected a list of integers >= 1"),
            ("invariance", "runner.cases={a: {shape: 3}}", "runner.cases.a.shape: expected a list of integers >= 1"),
            ("invariance", "runner.cases={a: {}}", "runner.approximations=[]", "runner.approximations: expected"),
            ("invariance", "runner.approximations=[]", "runner.approximations: expected at least one"),
            (
                "invariance",
                "group=rotation",
                "runner.cases={a: {group.nam: x}}",
                "group=rotation has no parameter 'nam'",
            ),
            ("fields", "runner.series={a: 3}", "runner.series.a: expected settings, found 3"),
            ("fields", "runner.series={a: {}}", "runner.others={b: 3}", "runner.others.b: expected settings"),
            (
                "fields",
                "runner.series={a: {}}",
                "runner.others={b: {along: 3, series: {c: {}}}}",
                "runner.others.b.along",
            ),
            ("fields", "runner.series={a: null}", "runner=fields needs dataset=vector_field"),
            (
                "budget",
                "runner.fits={a: null}",
                "runner.network={seed: 1}",
                "runner.grid={seed: 3}",
                "runner.grid.seed: ex",
            ),
            ("budget", "runner.fits={a: 3}", "runner.network={a: {}}", "runner.fits.a: expected settings, found 3"),
            ("measure", "runner.panels={a: 3}", "runner.panels.a: expected settings, found 3"),
            ("measure", "runner.series={a: 3}", "runner.series.a: expected settings, found 3"),
            ("measure", "runner.options={referenc: 3}", "runner.measure=kernel_error has no parameter 'referenc'"),
            ("measure", "runner.options={reference: 0}", "reference: expected an integer >= 1"),
            ("measure", "runner.series={a: {orbit.rule: quadratur}}", "orbit.rule: expected"),
            ("measure", "runner.measure=skeleton_locality", "approx=nystrom: runner.measure=skeleton_locality needs"),
            ("measure", "runner.sizes=[]", "runner.sizes: expected at least one value, found []"),
            ("compare", "group=identity", "group=identity: runner=compare compares another group with it"),
        )
    ),
    (
        *("runner=measure", "runner.measure=skeleton_locality", "runner.options={pixels: [[true, 5]]}"),
        "runner.options.pixels: expected rows and columns inside",
    ),
    (
        *("runner=measure", "runner.measure=orff_error", "runner.series={a: {kernel: {name: gaussian}}}"),
        "runner.series.a: kernel=gaussian is not",
    ),
    # ---- tables
    *(
        ("runner=table", *settings, message)
        for *settings, message in (
            ("runner.rows={A: 3}", "runner.rows.A: expected settings, found 3"),
            ("runner.rows={2017: {}}", "runner.rows: expected texts as labels, found 2017; write it in quotes"),
            ("runner.rows={A/B: {}}", "runner.rows: expected labels with letters or digits, of up to 80 characters"),
            ("runner.rows={A: {}}", "runner.published={A: 3 %}", "runner.published.A: expected a number"),
            ("runner.rows={a: {}}", "runner.few_repeats={a: true}", "runner.few_repeats.a: expected an integer"),
            ("runner.curves={c: null}", "runner.curves.c: expected a section with along, series"),
            ("runner.curves={c: {alon: 3}}", "runner.curves.c.alon: no such key; did you mean 'along'? It has along,"),
            ("runner.curves={../c: {along: {seed: [0]}, series: {A: {}}}}", "runner.curves: expected labels with"),
            ("runner.curves={c: {along: [1], series: {A: {}}}}", "runner.curves.c.along: expected one key with a list"),
            ("runner.curves={c: {along: {seed: [0]}, series: [1]}}", "runner.curves.c.series: expected labels with"),
            ("runner.curves={c: {along: {seed: [0]}, series: {A: {}}, metric: 3}}", "runner.curves.c.metric: expected"),
            (
                "runner.curves={c: {along: {learner: [{name: ridge}]}, series: {A: {}}}}",
                "runner.curves.c.along: expected numbers or names, found {'name': 'ridge'}",
            ),
            (
                "runner.curves={c: {along: {seed: [1]}, series: {a: {}}, published: {1: true}}}",
                "runner.curves.c.published: expected numbers for values of the key, found True",
            ),
        )
    ),
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
