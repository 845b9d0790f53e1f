"""Command lines and a part of the line that answers each, for tests/test_bad_input.py."""

from __future__ import annotations

FIELD = ("dataset=vector_field", "group=identity", "approx=orff", "learner=stein")
TABLE = ("dataset=table", "group=identity", "dataset.target=y")
LONG = "x" * 5000
TOO_LONG = "expected a path that can be read (File name too long), found 'xxxx"

#: What is on the command line -> a part of the line.
COMMAND_LINES: list[tuple[str | tuple[str, ...], str]] = [
    # ---- names
    ("group=rotaton", "group=rotaton: no such group; did you mean 'rotation'? Choose from affine, cyclic"),
    ("learner=rigde", "learner=rigde: no such learner; did you mean 'ridge'?"),
    ("approx=nystroem", "approx=nystroem: no such approx; did you mean 'nystrom'?"),
    ("kernel=gausian", "kernel=gausian: no such kernel; did you mean 'gaussian'?"),
    ("dataset=mnsit", "dataset=mnsit: no such dataset; did you mean 'mnist'?"),
    ("distribution=har", "distribution=har: no such distribution; did you mean 'haar'?"),
    ("encoder=patch", "encoder=patch: no such encoder; did you mean 'patches'?"),
    ("runner.name=fti", "runner=fti: no such runner; did you mean 'fit'?"),
    ("kernel.name=null", "kernel.name: field 'kernel.name' is not Optional"),
    ("++kernel.name=3", "kernel=3: no such kernel. Choose from arccos"),
    ("experiment=qm8", "experiment=qm8: no such experiment; did you mean 'qm7'?"),
    ("architecture=conv", "architecture=conv: no such architecture"),
    ("size=huge", "size=huge: no such size. Choose from middle, paper, small."),
    (("experiment=xperm", "size=middle"), "size=middle: experiment=xperm has no such size. Choose from paper, small."),
    ("group=", "group=: no such group"),
    ("group=3", "group: expected a name, found 3; write group=NAME"),
    ("group=null", "group: expected a name, found null; write group=NAME"),
    ("kernel=null", "kernel: expected a name, found null; write kernel=NAME"),
    ("size=null", "size: expected a name, found null; write size=NAME"),
    ("experiment=null", "experiment: expected a name, found null"),
    (("hydra.mode=MULTIRUN", "hydra/launcher=null"), "hydra/launcher: expected a name, found null"),
    ("group=3,rotation", "group: expected a name, found 3"),
    ("dataset=true", "dataset: expected a name, found True"),
    (
        ("hydra.mode=MULTIRUN", "hydra/launcher=foo"),
        "hydra/launcher=foo: no such hydra/launcher. Choose from basic, joblib",
    ),
    ("hydra/launcher=joblib", "hydra/launcher=joblib: is for a sweep, which is started with -m"),
    ("hydra/sweeper=optuna", "hydra/sweeper=optuna: is for a sweep, which is started with -m"),
    ("hydra=3", "hydra: expected a name, found 3"),
    ("schema=3", "schema: expected a name, found 3"),
    # ---- numbers that the precision of the engine does not have
    *(
        ((*more, f"kernel.lengthscale={value}"), f"kernel.lengthscale: expected a number between {between}")
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
        (*FIELD, "kernel=curl_free", "kernel.base={name: gaussian, lengthscale: 1e30}"),
        "kernel.base.lengthscale: expected a number between 1.2e-18 and 6.5e+18 in float32",
    ),
    (("hyper=gaussian", "hyper.lengthscale=1e-30"), "hyper.lengthscale: expected a number between 1.2e-18 and 6.5e"),
    (("kernel=polynomial", "kernel.gamma=1e40"), "kernel.gamma: expected a number up to 3.3e+35 in float32 (engine"),
    (("kernel=polynomial", "kernel.coef0=1e20"), "kernel.coef0: expected a number up to 6.9e+11 in float32 (engine"),
    # ---- keys that do not exist, however they are spelt
    ("grup=rotation", "grup: no such key; did you mean 'group'?"),
    ("+colour=red", "colour: no such key"),
    ("++colour=red", "colour: no such key"),
    ("a.b.c=d", "a: no such key"),
    ("+a.b=c", "a: no such key"),
    ("++foo.bar=1", "foo: no such key"),
    ("+approx.width=3", "approx=nystrom has no parameter 'width'"),
    ("++approx.width=3", "approx=nystrom has no parameter 'width'"),
    ("dataset.rot=here", "dataset.rot: no such key; did you mean 'root'?"),
    ("approx.n_componets=3", "approx.n_componets: no such key; did you mean 'n_components'?"),
    ("kernel.radius=-1", "kernel.radius: no such key. Choose from name, lengthscale."),
    ("group.a.b=c", "group.a: no such key"),
    ("group.sampling=polar", "group.sampling: no such key of group=auto; choose a group, group=NAME"),
    ("representation.radii=3", "representation.radii: no such key of representation=auto; choose a representation,"),
    ("engine.mem=1", "engine.mem: no such key; did you mean 'memory'?"),
    ("+engine.mem=1", "engine.mem: no such key; did you mean 'memory'?"),
    ("++engine.mem=1", "engine.mem: no such key; did you mean 'memory'? Choose from memory, workers"),
    ("orbit.sizes=3", "orbit.sizes: no such key; did you mean 'size'?"),
    ("+orbit.sizes=3", "orbit.sizes: no such key; did you mean 'size'?"),
    ("++orbit.sizes=3", "orbit.sizes: no such key; did you mean 'size'? Choose from size, rule, random_phase."),
    ("tracking.url=x", "tracking.url: no such key; did you mean 'uri'?"),
    ("++tracking.url=x", "tracking.url: no such key; did you mean 'uri'? Choose from enabled, uri, experiment"),
    *((f"++{kind}.foo=1", f"{kind}=") for kind in ("dataset", "group", "kernel", "hyper", "landmarks")),
    ("++learner.foo=1", "learner=ridge has no parameter 'foo'"),
    ("++runner.foo=1", "runner=fit has no parameter 'foo'. It has save_model"),
    ("hydra.foo=1", "hydra.foo: no such key"),
    ("+hydra.foo=1", "hydra.foo: no such key"),
    ("++hydra.foo=1", "hydra.foo: no such key. Choose from defaults, mode"),
    ("++hydra.run.dirs=x", "hydra.run.dirs: no such key; did you mean 'dir'?"),
    ("kernel.rank.a=1", "kernel.rank: no such key"),
    ("learner.regularization.0=3", "learner.regularization.0: no such key."),
    ("Group=rotation", "Group: no such key; did you mean 'group'?"),
    # ---- sections and settings that every run has
    *((f"~{key}", f"{key}: expected settings {key}.KEY=VALUE, found null") for key in ("orbit", "tracking", "engine")),
    ("~kernel", "kernel: expected a name, found null; write kernel=NAME"),
    ("~kernel.lengthscale", "kernel.lengthscale: gaussian (DictConfig) does not support deletion"),
    ("tracking=3", "tracking: expected settings tracking.KEY=VALUE, found 3"),
    ("tracking=null", "tracking: expected settings tracking.KEY=VALUE, found null"),
    ("engine=3", "engine: expected settings engine.KEY=VALUE, found 3"),
    ("engine=null", "engine: expected settings engine.KEY=VALUE, found null"),
    ("orbit=null", "orbit: expected settings orbit.KEY=VALUE, found null"),
    ("orbit=[]", "orbit: Cannot merge DictConfig with ListConfig"),
    ("+kernel=laplacian", "Multiple values for kernel"),
    ("++kernel=3", "kernel: expected a name, found 3"),
    ("+seed=3", "An item is already at 'seed'"),
    # ---- arguments
    ("=3", "=3: expected KEY=VALUE, found no key"),
    ("+=3", "+=3: expected KEY=VALUE, found no key"),
    ("-x", "unrecognized arguments: -x; settings are written KEY=VALUE, side by side"),
    (
        ("seed=0", "--multirun", "group=rotation", "size=paper"),
        "unrecognized arguments: group=rotation size=paper; settings are written KEY=VALUE, side by side, --help lists",
    ),
    ("--foo", "unrecognized arguments: --foo; settings are written KEY=VALUE"),
    ("--foo=3", "unrecognized arguments: --foo=3; settings are written KEY=VALUE"),
    ("--cfg=everything", "argument --cfg/-c: invalid choice: 'everything' (choose from 'job', 'hydra', 'all')"),
    ("--experimental-rerun=job.pickle", "--experimental-rerun: expected settings KEY=VALUE, found a pickle, which"),
    ("seed\n=3", "'seed\\n=3': expected KEY=VALUE"),
    ("seed:3", "'seed:3': expected KEY=VALUE"),
    ("--config-dir", "argument --config-dir/-cd: expected one argument"),
    ("-", "'-': expected KEY=VALUE"),
    ("", "'': expected KEY=VALUE"),
    ("group", "'group': expected KEY=VALUE (missing EQUAL at '<EOF>')"),
    ("approx.n_components", "'approx.n_components': expected KEY=VALUE"),
    ("a=b=c", "'a=b=c': expected KEY=VALUE"),
    ("group..a=1", "'group..a=1': expected KEY=VALUE"),
    (".group=1", "'.group=1': expected KEY=VALUE"),
    ("kernel.lengthscale='", "expected KEY=VALUE"),
    ("kernel.lengthscale=${seed", "expected KEY=VALUE"),
    ("kernel.lengthscale=${foo}", "kernel.lengthscale: Interpolation key 'foo' not found"),
    ("kernel.lengthscale=${oc.env:ORBIT_NOT_SET}", "Environment variable 'ORBIT_NOT_SET' not found"),
    # ---- numbers
    ("approx.n_components=many", "approx.n_components: expected an integer >= 1, found 'many'"),
    ("approx.n_components=0", "approx.n_components: expected an integer >= 1, found 0"),
    ("approx.n_components=1e3", "approx.n_components: expected an integer >= 1, found 1000.0"),
    ("approx.n_components=1.0", "approx.n_components: expected an integer >= 1, found 1.0"),
    ("approx.n_components=true", "approx.n_components: expected an integer >= 1, found True"),
    ("approx.n_components=null", "approx.n_components: expected an integer >= 1, found null"),
    ("approx.n_components=[1]", "approx.n_components: expected an integer >= 1, found [1]"),
    ("approx.n_components={a: 1}", "approx.n_components: expected an integer >= 1, found {'a': 1}"),
    ("orbit.size=-4", "orbit.size: expected an integer >= 1 or null, found -4"),
    ("orbit.size=2.5", "orbit.size: expected an integer >= 1 or null, found 2.5"),
    ("dataset.n_train=0", "dataset.n_train: expected an integer >= 1 or null, found 0"),
    ("seed=-1", "seed: expected an integer >= 0, found -1"),
    ("seed=one", "seed: expected an integer >= 0, found 'one'"),
    ("seed=1.5", "seed: expected an integer >= 0, found 1.5"),
    ("seed=null", "seed: expected an integer >= 0, found null"),
    ("seed=[1]", "seed: expected an integer >= 0, found [1]"),
    ("++seed.a=1", "seed: expected an integer >= 0, found {}"),
    (
        f"approx.n_components=1{'0' * 400}",
        "approx.n_components: expected 0 or a number of size 1e-100 to 1e+100, found 1",
    ),
    (f"seed=1{'0' * 400}", "seed: expected 0 or a number of size 1e-100 to 1e+100, found 1000"),
    (f"learner.regularization=[1{'0' * 400}]", "learner.regularization: expected 0 or a number of size 1e-100 to"),
    (f"kernel.lengthscale=1{'0' * 400}", "kernel.lengthscale: expected 0 or a number of size 1e-100 to 1e+100"),
    ("engine.memory=0", "engine.memory: expected a finite number > 0 and <= 1e+06, found 0"),
    ("engine.memory=much", "engine.memory: expected a finite number > 0 and <= 1e+06, found 'much'"),
    ("engine.workers=0", "engine.workers: expected an integer >= 1 or null, found 0"),
    ("engine.spectral_tolerance=-1", "engine.spectral_tolerance: expected a finite number >= 0 or null, found -1"),
    ("kernel.lengthscale=big", "kernel.lengthscale: expected a finite number > 0 or 'median', found 'big'"),
    ("kernel.lengthscale=", "kernel.lengthscale: expected a finite number > 0 or 'median', found ''"),
    ("kernel.lengthscale=0", "kernel.lengthscale: expected a finite number > 0 or 'median', found 0"),
    ("kernel.lengthscale=nan", "kernel.lengthscale: expected a finite number > 0 or 'median', found nan"),
    ("kernel.lengthscale=inf", "kernel.lengthscale: expected a finite number > 0 or 'median', found inf"),
    ("kernel.lengthscale=1e400", "kernel.lengthscale: expected a finite number > 0 or 'median', found inf"),
    ("kernel.lengthscale=null", "kernel.lengthscale: expected a finite number > 0 or 'median', found null"),
    ("kernel.lengthscale=true", "kernel.lengthscale: expected a finite number > 0 or 'median', found True"),
    ("kernel.lengthscale=[1]", "kernel.lengthscale: expected a finite number > 0 or 'median', found [1]"),
    ("learner.regularization=[1,-1]", "learner.regularization: expected a finite number > 0 or a list"),
    ("learner.regularization={a: 1}", "learner.regularization: expected a finite number > 0 or a list"),
    ("learner.regularization=[]", "learner.regularization: expected at least one value, found []"),
    (("learner=svm", "learner.regularization=[]"), "learner.regularization: expected at least one value, found []"),
    (("learner=adagrad", "learner.learning_rate=[]"), "learner.learning_rate: expected at least one value, found []"),
    (
        ("learner=network", "approx=points", "learner.learning_rate=[]"),
        "learner.learning_rate: expected at least one value, found []",
    ),
    ((*FIELD[:2], "learner=gp", "learner.noise=[]"), "learner.noise: expected at least one value, found []"),
    (("distribution=uniform", "distribution.high=-30"), "distribution.high: expected a number > low=-20"),
    # ---- true and false, names, texts
    ("orbit.random_phase=2", "orbit.random_phase: expected true or false, found 2"),
    ("orbit.random_phase=1", "orbit.random_phase: expected true or false, found 1"),
    ("orbit.random_phase=yes", "orbit.random_phase: expected true or false, found 'yes'"),
    ("engine.stream=1", "engine.stream: expected true or false, found 1"),
    ("resume=2", "resume: expected true or false, found 2"),
    ("resume=maybe", "resume: expected true or false, found 'maybe'"),
    ("runner.save_model=0", "runner.save_model: expected true or false, found 0"),
    ("tracking.enabled=2", "tracking.enabled: expected true or false, found 2"),
    ("tracking.enabled=null", "tracking.enabled: expected true or false, found None"),
    *(
        (
            f"tracking.{key}={value!r}",
            f"tracking.{key}: expected a name that is not empty, of printable characters in one",
        )
        for key in ("uri", "experiment", "artifacts")
        for value in ("", " ")
    ),
    *(
        (f"tracking.{key}='a\nb'", f"tracking.{key}: expected a name that is not empty, of printable characters in one")
        for key in ("uri", "experiment", "artifacts")
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
    ("tracking.experiment=null", "tracking.experiment: expected a string, found null"),
    ("tracking.experiment=[1]", "tracking.experiment: expected a string, found [1]"),
    ("outputs=null", "outputs: expected the name of a folder, found null"),
    ("outputs=", "outputs: expected the name of a folder, found ''"),
    ("outputs=' '", "outputs: expected the name of a folder, found ' '"),
    ("outputs=[a]", "outputs: expected a string, found ['a']"),
    ("run_name='a\nb'", "run_name: expected 1 to 200 printable characters in one line, found 'a\\nb'"),
    ("run_name='a\tb'", "run_name: expected 1 to 200 printable characters in one line, found 'a\\tb'"),
    ("run_name='a\0b'", "run_name: expected 1 to 200 printable characters in one line, found 'a\\x00b'"),
    ("run_name=''", "run_name: expected 1 to 200 printable characters in one line, found ''"),
    (f"run_name={'x' * 400}", "run_name: expected 1 to 200 printable characters in one line, found 'xxx"),
    (f"run_name='{'ü' * 101}'", "run_name: expected 1 to 200 printable characters in one line, found 'üüü"),
    ("orbit.rule=simpson", "orbit.rule: expected one of 'monte_carlo', 'qmc', 'quadrature' or null, found 'simpson'"),
    ("engine.path=fast", "engine.path: expected one of 'auto', 'direct', 'template', 'spectral', found 'fast'"),
    ("engine.dtype=float16", "engine.dtype: expected one of 'auto', 'float32', 'float64', found 'float16'"),
    (("representation=unit_norm", "representation.norm=tall"), "representation.norm: expected one of"),
    # ---- components that do not go together
    ((*FIELD, "kernel=curl_free", "kernel.base=polynomial"), "base: kernel=polynomial is not shift invariant"),
    ((*FIELD, "kernel=curl_free", "kernel.base={name: matern, nu: -1}"), "kernel.base.nu: expected"),
    ((*FIELD, "kernel=decomposable", "kernel.output=simplex"), "kernel.output=simplex is for classes"),
    ((*FIELD, "kernel=decomposable", "hyper=gaussian"), "hyper=gaussian mixes the features of approx=orff"),
    ((*FIELD[:3], "kernel=curl_free", "learner=knn"), "learner=knn cannot use the operator-valued features"),
    ("learner=gp", "learner=gp is not for classification, which dataset=rotated_digits needs: choose from"),
    (("learner=lasso",), "learner=lasso: no such learner"),
    ("kernel=curl_free", "kernel=curl_free is operator-valued, approx=nystrom is not: choose approx=orff"),
    (("approx=skeleton", "encoder=patches"), "approx=skeleton takes no encoder, found encoder=patches"),
    (("engine.stream=true", "learner=svm"), "the learner 'svm' needs all features at once"),
    (("learner=network",), "learner=network computes its own features, found approx=nystrom"),
    (("augmentation=image",), "augmentation=image changes points in every pass over them: set engine.stream=true"),
    (("augmentation=image", "engine.stream=true"), "augmentation=image: learner=ridge makes only one pass"),
    (("selection=k_fold",), "selection.grid: selection=k_fold needs keys with values"),
    (("selection=k_fold", "selection.grid={dataset.n_train: [3]}"), "dataset.n_train cannot be selected"),
    (
        ("selection=k_fold", "selection.grid={1: [3]}"),
        "selection.grid: expected configuration keys, each with a list of",
    ),
    (
        ("selection=k_fold", "selection.grid={kernel: [laplacian]}"),
        "kernel: expected {name: NAME} with a NAME of arccos",
    ),
    (("selection=k_fold", "selection.grid={kernel.lengthscale: [-1]}"), "kernel.lengthscale: expected"),
    (
        ("approx=cdf", "kernel=cdf", "kernel.radius=-1"),
        "kernel.radius: expected a finite number > 0 or 'max', found -1",
    ),
    (("approx=cdf", "kernel.lengthscale=-1"), "kernel.lengthscale: expected a finite number > 0 or 'median', found -1"),
    ((*TABLE, "dataset.path=here.csv", "learner.regularization=-1"), "learner.regularization: expected"),
    # ---- files
    (("dataset=mnist", "dataset.root=nowhere"), "expected the file train-images-idx3-ubyte.gz at"),
    (("dataset=mnist", "dataset.root=nowhere"), "that has it, or fetch it with dataset.download=true."),
    (("dataset=mnist", f"dataset.root={LONG}"), f"dataset.root: {TOO_LONG}"),
    (("dataset=spoken_digits", f"dataset.root={LONG}"), f"dataset.root: {TOO_LONG}"),
    (("dataset=cifar10", "dataset.root='~nobody-here'"), "dataset.root: expected a path that can be read (Could not"),
    (("dataset=arrays",), "dataset.path: expected the path of an .npz or .npy file, found none"),
    (("dataset=arrays", "dataset.path=gone.npz"), "dataset.path: expected a file at"),
    (("dataset=arrays", f"dataset.path={LONG}"), f"dataset.path: {TOO_LONG}"),
    (("dataset=arrays", "dataset.path='a\0b'"), "dataset.path: expected a path that can be read (embedded null byte)"),
    (("dataset=arrays", "dataset.path=."), "found a folder"),
    (("dataset=arrays", "dataset.path='a\nb.npz'"), "a\\nb.npz, found none"),
    (("dataset=images",), "dataset.path: expected a folder with a folder of pictures for each class, found none"),
    (("dataset=images", "dataset.path=gone"), "dataset.path: expected a folder at"),
    (("dataset=images", f"dataset.path={LONG}"), f"dataset.path: {TOO_LONG}"),
    (("dataset=images", "dataset.resize=[8]"), "dataset.resize: expected [height, width] in pixels, found [8]"),
    (("dataset=images", "dataset.resize=[8,0]"), "dataset.resize: expected a list, each item an integer >= 1"),
    (("dataset=table",), "dataset.path: expected the path of a .csv or .parquet file, found none"),
    (("dataset=table", "dataset.path=x.csv"), "dataset.target: expected the name of the column to predict, found none"),
    ((*TABLE, "dataset.path=gone.csv"), "dataset.path: expected a file at"),
    ((*TABLE, f"dataset.path={LONG}"), f"dataset.path: {TOO_LONG}"),
    ((*TABLE, "dataset.path=here.csv", "dataset.test_path=gone.csv"), "dataset.test_path: expected a file at"),
    ((*TABLE, "dataset.features=[]"), "dataset.features: expected at least one column, or null for all columns"),
    ((*TABLE, "dataset.features=[a,a]"), "dataset.features: expected columns named once each, found ['a', 'a']"),
    ((*TABLE, "dataset.target=[a,a]"), "dataset.target: expected columns named once each, found ['a', 'a']"),
    ((*TABLE, "dataset.weight=y"), "dataset.weight: expected another column than the target, found 'y'"),
    (("encoder=onnx", f"encoder.path={LONG}"), f"encoder.path: {TOO_LONG}"),
    (("encoder=onnx", "encoder.path=gone.onnx"), "encoder.path: expected the path of a network (.onnx file)"),
    (
        (*FIELD, "kernel=decomposable", "kernel.output=graph", "kernel.adjacency=gone.npy"),
        "kernel.adjacency: expected an .npy file at gone.npy, found none",
    ),
    (
        (*FIELD, "kernel=decomposable", "kernel.output=graph", f"kernel.adjacency={LONG}"),
        f"kernel.adjacency: {TOO_LONG}",
    ),
    ("runner=predict", "runner.model: expected the folder of a run, or runs:/ID/model, found None"),
    (("runner=predict", "runner.model=there"), "runner.input: expected an existing file or folder with new points"),
    (
        ("runner=predict", "runner.model=there", "runner.input=gone"),
        "runner.input: expected an existing file or folder",
    ),
    (("runner=predict", "runner.model=there", f"runner.input={LONG}"), f"runner.input: {TOO_LONG}"),
    (
        ("runner=predict", "runner.model=there", "runner.input=here.csv", "runner.output=gone/x.csv"),
        "runner.output: expected a file in an existing folder, found 'gone/x.csv'",
    ),
    (
        ("runner=predict", "runner.model=there", "runner.input=here.csv", f"runner.output={LONG}"),
        f"runner.output: {TOO_LONG}",
    ),
    *(
        (
            ("runner=predict", "runner.model=there", "runner.input=here.csv", f"runner.output={output}"),
            f"runner.output: expected a file in an existing folder, found '{output}'",
        )
        for output in ("", "/", ".", "/dev/null")
    ),
    (
        ("runner=predict", "runner.model=there", "runner.input=here.csv", "runner.output=./here.csv"),
        "runner.output: expected another file than runner.input, found './here.csv'",
    ),
    (("runner=memory", "runner.cases=null"), "runner.cases: expected"),
    (("runner=memory", "runner.cases={a: {points: 0}}"), "runner.cases: expected"),
    (("runner=memory", "runner.cases={a: {points: some}}"), "runner.cases: expected"),
    (("runner=memory", "runner.cases={a: {points: true}}"), "runner.cases: expected"),
    (
        ("runner=timing", "runner.sweep={N: [8, true]}"),
        "runner.sweep: expected lists of integers >= 1 for any of N, s, r, side, D, found N: [8, True]",
    ),
    (
        ("runner=table", "runner.rows={a: {}}", "runner.few_repeats={a: true}"),
        "runner.few_repeats.a: expected an integer >= 1, found True",
    ),
    (
        ("runner=table", "runner.curves={c: {along: {seed: [1]}, series: {a: {}}, published: {1: true}}}"),
        "runner.curves.c.published: expected numbers for values of the key, found True",
    ),
    (
        ("runner=measure", "runner.measure=skeleton_locality", "runner.options={pixels: [[true, 5]]}"),
        "runner.options.pixels: expected rows and columns inside",
    ),
    (("runner=memory", "runner.cases={a: 3}"), "runner.cases: expected"),
    # ---- sections with labels and changes, and lists
    *(
        ((f"runner={runner}", *settings), message)
        for runner, settings, message in (
            ("invariance", ("runner.cases={a: 3}",), "runner.cases.a: expected settings, found 3"),
            (
                "invariance",
                ("runner.cases={a: {moves: 3}}",),
                "runner.cases.a.moves: expected settings of orbit",
            ),
            ("invariance", ("runner.cases={a: {shape: x}}",), "runner.cases.a.shape: expected a list of integers >= 1"),
            (
                "invariance",
                ("runner.cases={a: {}}", "runner.approximations=[]"),
                "runner.approximations: expected",
            ),
            (
                "invariance",
                ("group=rotation", "runner.cases={a: {group.nam: x}}"),
                "group=rotation has no parameter 'nam'",
            ),
            ("fields", ("runner.series={a: 3}",), "runner.series.a: expected settings, found 3"),
            (
                "fields",
                ("runner.series={a: {}}", "runner.others={b: 3}"),
                "runner.others.b: expected settings",
            ),
            (
                "fields",
                ("runner.series={a: {}}", "runner.others={b: {along: 3, series: {c: {}}}}"),
                "runner.others.b.along",
            ),
            ("invariance", ("runner.cases={a: {shape: 3}}",), "runner.cases.a.shape: expected a list of integers >= 1"),
            ("invariance", ("runner.cases={a: {moves: {siz: 3}}}",), "siz"),
            ("invariance", ("runner.approximations=[]",), "runner.approximations: expected at least one"),
            (
                "budget",
                ("runner.fits={a: null}", "runner.network={seed: 1}", "runner.grid={seed: 3}"),
                "runner.grid.seed: ex",
            ),
            ("fields", ("runner.series={a: null}",), "runner=fields needs dataset=vector_field"),
            ("measure", ("runner.panels={a: 3}",), "runner.panels.a: expected settings, found 3"),
            ("measure", ("runner.series={a: 3}",), "runner.series.a: expected settings, found 3"),
            ("measure", ("runner.options={referenc: 3}",), "runner.measure=kernel_error has no parameter 'referenc'"),
            ("measure", ("runner.options={reference: 0}",), "reference: expected an integer >= 1"),
            ("measure", ("runner.series={a: {orbit.rule: quadratur}}",), "orbit.rule: expected"),
            (
                "measure",
                ("runner.measure=skeleton_locality",),
                "approx=nystrom: runner.measure=skeleton_locality needs",
            ),
            (
                "measure",
                ("runner.measure=orff_error", "runner.series={a: {kernel: {name: gaussian}}}"),
                "runner.series.a: kernel=gaussian is not",
            ),
            ("budget", ("runner.fits={a: 3}", "runner.network={a: {}}"), "runner.fits.a: expected settings, found 3"),
            ("measure", ("runner.sizes=[]",), "runner.sizes: expected at least one value, found []"),
            ("compare", ("group=identity",), "group=identity: runner=compare compares another group with it"),
        )
    ),
    # ---- tables
    *(
        (("runner=table", setting), message)
        for setting, message in (
            ("runner.rows={A: 3}", "runner.rows.A: expected settings, found 3"),
            ("runner.rows={2017: {}}", "runner.rows: expected texts as labels, found 2017; write it in quotes"),
            ("runner.rows={A/B: {}}", "runner.rows: expected labels with letters or digits, of up to 80 characters"),
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
        )
    ),
    (("runner=table", "runner.rows={A: {}}", "runner.published={A: 3 %}"), "runner.published.A: expected a number"),
    ("run_name=a/b", "run_name: expected a name without /"),
]

GLOBAL = "# @package _global_\n"

#: Kind -> its first names. The names of some kinds are part of the name of a run, which Hydra needs first of all.
NO_NAME = {
    "kernel": "arccos, cdf",
    "group": "affine, cyclic",
    "runner": "budget, compare",
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
    (
        f"{GLOBAL}defaults: 3",
        "experiment/mine.yaml: Invalid defaults list in 'experiment/mine', defaults must be a list",
    ),
    (f"{GLOBAL}defaults: [3]", "experiment/mine.yaml: Unsupported type in defaults : int"),
    (f"{GLOBAL}defaults: [null]", "experiment/mine.yaml: Unsupported type in defaults : NoneType"),
    (f"{GLOBAL}defaults: [gone]", "In 'experiment/mine': Could not load 'experiment/gone'."),
    ("# @package\nseed: 3", "experiment/mine.yaml: Expected header format: KEY VALUE, got '@package'"),
    (
        "seed: 3",
        "experiment/mine.yaml: expected a first line '# @package _global_', because there is no key experiment",
    ),
    ("- a\n- b", "experiment/mine.yaml: expected a first line '# @package _global_'"),
    (f"{GLOBAL}grup: rotation", "experiment/mine.yaml: grup: no such key; did you mean 'group'?"),
    (
        f"{GLOBAL}kernel: {{lenght: 3}}",
        "experiment/mine.yaml: kernel.lenght: no such key. Choose from name, lengthscale.",
    ),
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
        (
            f"{GLOBAL}{section}: {value}",
            f"experiment/mine.yaml: {section}: expected settings KEY: VALUE, found {shown}",
        )
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
    (
        f"{GLOBAL}kernel: {{name: null}}",
        "experiment/mine.yaml: kernel.name: Incompatible value 'None' for field of type",
    ),
    (
        f"{GLOBAL}kernel: {{lengthscale: .nan}}",
        "kernel.lengthscale: expected a finite number > 0 or 'median', found nan",
    ),
    (f"{GLOBAL}x: {{_target_: os.system}}", "mine.yaml: the key '_target_' names code to run"),
]
