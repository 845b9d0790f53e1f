"""The configuration files agree with the components they describe."""

import functools
import re
from string import Template

import numpy as np
import pytest
import yaml
from command_line import CONF, CONF_DIRS, EXPERIMENTS, by_hydra_alone, composed, fitted, quickly_composed
from omegaconf import OmegaConf

import orbit
import runners.components  # noqa: F401  registers the runners
from orbit.core.errors import InputError, UnknownNameError
from runners.config.defaults import Facts, fill_defaults
from runners.config.info import describe_topic, requested
from runners.config.plan import plan
from runners.config.schema import KINDS, PLUGINS, config_parameters
from runners.experiments.result_table import ResultTable

COMPONENTS = [(kind, name) for kind in KINDS for name in orbit.available(kind)]


@functools.cache
def one_of_every_kind(position: int):
    """A configuration with the component at ``position`` of every kind, from the first again where a kind has fewer."""
    names = {kind: orbit.available(kind) for kind in KINDS}
    return composed(*(f"{kind}={some[position % len(some)]}" for kind, some in names.items()))


LARGER = sorted(path for folder in CONF_DIRS for path in folder.glob("experiment/*/*.yaml") if path.stem != "small")


@pytest.mark.parametrize(("kind", "name"), COMPONENTS)
class TestEveryComponent:
    def test_composes_with_its_own_defaults_and_its_types_checked(self, kind, name):
        section = one_of_every_kind(orbit.available(kind).index(name))[kind]
        assert OmegaConf.is_struct(section)
        expected = {key: parameter.default for key, parameter in config_parameters(kind, name).items()}
        expected = {key: list(v) if isinstance(v, tuple) else v for key, v in expected.items()}
        assert OmegaConf.to_container(section) == {"name": name} | expected

    def test_information_explains_every_key(self, kind, name):
        lines = [*describe_topic(f"{kind}={name}", *CONF_DIRS).splitlines(), ""]
        assert lines[0].startswith(f"{kind}={name}: ")
        for key in config_parameters(kind, name):
            at = next(i for i, line in enumerate(lines) if line.startswith(f"{kind}.{key}="))
            assert lines[at + 1].startswith("    expects ")
            assert lines[at + 2].startswith("    "), f"the docstring of {kind}={name} says nothing about {key}"


def test_no_file_repeats_a_default():
    """The constructor's signature is the home of a default."""
    for kind in KINDS:
        for path in (path for folder in CONF_DIRS for path in folder.glob(f"{kind}/*.yaml")):
            content = yaml.safe_load(path.read_text())
            for schema in re.findall(rf"/schema/{kind}/(\w+)@", path.read_text()):
                defaults = {key: parameter.default for key, parameter in config_parameters(kind, schema).items()}
                repeated = [key for key in content if key in defaults and content[key] == defaults[key]]
                assert not repeated, path
    config = yaml.safe_load((CONF / "config.yaml").read_text())
    assert not {"orbit", "engine", "tracking"} & set(config)
    text = OmegaConf.create(config["hydra"]["help"])["template"]
    assert Template(text).is_valid(), "Hydra fills it in for --help"


class TestInformation:
    @pytest.mark.parametrize(
        ("topic", "expected"),
        [
            (
                "kernel=gaussian",
                "kernel.lengthscale=auto\n    expects a finite number > 0 or one of "
                "'auto', 'evidence', 'ard', 'median'\n    In the units of",
            ),
            ("engine", "engine.progress=true  (in Python: false)"),
            ("run", "\nseed=0\n"),
            ("tracking", "\ntracking.enabled=true\n"),
            ("dataset=table", "\n    by default with group=identity representation=standardize encoder=none\n"),
            ("dataset=images", "\n    by default with group=auto representation=unit_norm encoder=by_size\n"),
            ("approx=rf", '\n    source: Raj et al., "Local Group Invariant Representations'),
        ],
    )
    def test_says(self, topic, expected):
        assert expected in describe_topic(topic, *CONF_DIRS)
        assert "source:" not in describe_topic("group=identity", *CONF_DIRS)

    def test_a_kind_lists_its_names_and_presets(self):
        lines = describe_topic("kernel", *CONF_DIRS).splitlines()
        names = [line.split()[0] for line in lines]
        assert {"kernel=gaussian", "kernel=curl_free", "kernel=patches_conv4"} <= set(names)

    def test_a_preset_is_its_file(self):
        (file,) = (path for folder in CONF_DIRS for path in folder.glob("kernel/patches_conv4.yaml"))
        assert describe_topic("kernel=patches_conv4", *CONF_DIRS) == file.read_text().rstrip()

    def test_files_are_listed_with_their_comments(self):
        text = describe_topic("experiment", *CONF_DIRS)
        assert re.search(r"^experiment=rotated_mnist +Raj et al. \(2017\), Table 2: ", text, re.MULTILINE)
        assert describe_topic("experiment=xperm", *CONF_DIRS) == EXPERIMENTS["xperm"].read_text().rstrip()

    def test_the_shell_completes_names(self, run, monkeypatch):
        for line, expected in [("group=dih", "group=dihedral\n"), ("experiment=xp", "experiment=xperm\n")]:
            monkeypatch.setenv("COMP_LINE", f"orbit {line}")
            assert run("-sc", "query=bash") == (0, expected, "")

    @pytest.mark.parametrize(
        ("topic", "expected"),
        [
            ("kernl", "did you mean 'kernel'"),
            ("group=rotaton", "did you mean 'rotation'"),
            ("experiment=xprm", "mean 'xperm'"),
        ],
    )
    def test_an_unknown_topic_is_answered_with_the_closest(self, topic, expected):
        with pytest.raises(UnknownNameError, match=expected):
            describe_topic(topic, *CONF_DIRS)

    def test_launchers_and_sweepers_are_explained(self):
        for kind, known in PLUGINS.items():
            assert len(describe_topic(kind, *CONF_DIRS).splitlines()) == len(known)
            for name in known:
                text = describe_topic(f"{kind}={name}", *CONF_DIRS)
                assert text.startswith(f"{kind}={name}: ")
                assert f"{kind.replace('/', '.')}.n_jobs=" in text
                assert "_target_" not in text
        with pytest.raises(UnknownNameError, match="did you mean 'joblib'"):
            describe_topic("hydra/launcher=jobib", *CONF_DIRS)

    def test_everything_at_once(self):
        text = describe_topic("components", *CONF_DIRS)
        assert [line.partition(":")[0] for line in text.splitlines() if re.match(r"\w+=\w+: ", line)] == [
            f"{kind}={name}" for kind in KINDS for name in orbit.available(kind)
        ]

    @pytest.mark.parametrize(
        ("arguments", "topic"),
        [
            (["--info", "group"], "group"),
            (["a=1", "--info=group=x"], "group=x"),
            (["-i", "group=x"], "group=x"),
            (["--info", "plugins"], None),
            ([], None),
        ],
    )
    def test_topics_of_hydra_are_left_to_it(self, arguments, topic):
        assert requested(arguments) == topic


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, "small") for name in EXPERIMENTS),
        *(pytest.param(path.parent.name, path.stem, marks=pytest.mark.slow) for path in LARGER),
    ],
)
def test_every_experiment_is_a_plan_with_all_its_rows(name, size, monkeypatch):
    for loader in orbit.available("dataset"):  # the files of an experiment need not be here
        monkeypatch.setattr(orbit.get("dataset", loader), "check_files", lambda self: None)
    made = plan(composed(f"experiment={name}", f"size={size}", "dataset.root=elsewhere"))
    runner = made.component("runner")
    if isinstance(runner, ResultTable):
        assert runner.plans(made)


def test_nothing_in_conf_can_run_code():
    for path in (path for folder in CONF_DIRS for path in folder.rglob("*.yaml")):
        targets = re.findall(r"_target_:\s*(\S+)", path.read_text())
        assert targets in ([], ["runners.tracking.sweep.SweepCallback"]), path


@pytest.mark.parametrize(
    "line",
    [
        "",
        "dataset=digits approx=rf approx.n_components=9 hyper=gaussian run_name=mine",
        "kernel=exponential ~hyper seed=3",
        "experiment=qm7 size=paper learner=svm",
    ],
)
def test_compositions_of_tests_are_those_of_hydra(line):
    expected = by_hydra_alone(*line.split())
    for _ in range(2):  # the second one finds the work of the first
        assert composed(*line.split()) == quickly_composed(*line.split()) == expected


class TestHash:
    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ("engine.workers=1 outputs=a tracking.enabled=false", "engine.workers=2 outputs=b resume=true"),
            ("", "distribution=haar orbit.size=32"),  # the defaults
            ("dataset=xperm", "dataset=xperm group=permutation group.mode=blocks"),
            *((f"approx={approx}", f"approx={approx} kernel=laplacian") for approx in ("cdf", "points")),  # not used
            *(
                (f"dataset={name}", f"dataset={name} dataset.root=elsewhere")  # which it does not need
                for name in ("xperm", "digits", "rotated_digits", "vector_field", "low_rank_multitask")
            ),
        ],
    )
    def test_is_equal_for_settings_with_the_same_results(self, one, two):
        assert plan(quickly_composed(*one.split())).config_hash == plan(quickly_composed(*two.split())).config_hash

    @pytest.mark.parametrize("change", ["seed=1", "group=identity", "engine.dtype=float64", "kernel.lengthscale=2"])
    def test_differs_for_settings_that_change_results(self, change):
        assert plan(quickly_composed()).config_hash != plan(quickly_composed(change)).config_hash

    @pytest.mark.parametrize(
        ("group", "rule"),
        [
            ("permutation", None),  # n! is known when the points are
            ("permutation,group.n=2", "quadrature"),
            ("permutation,group.n=9", "monte_carlo"),
            ("affine", "qmc"),
        ],
    )
    def test_the_rule_of_the_orbit_is_filled_in_if_it_does_not_depend_on_the_points(self, group, rule):
        made = plan(quickly_composed(*f"group={group}".split(",")))
        assert made.config["orbit"]["rule"] == rule
        assert ("orbit.rule" in made.defaults) == (rule is not None)


class TestFeaturesWithAKernelOfTheirOwn:
    def test_name_and_plan_have_the_kernel_of_the_features(self):
        cfg = composed("approx=cdf", "kernel=laplacian", "approx.norm=radius", "approx.templates=sphere")
        made = plan(cfg)
        assert cfg.run_name == "rotated_digits-rotation-cdf-s0"
        assert made.config["kernel"] == {"name": "cdf", "radius": "max", "epsilon": 0.1, "templates": "sphere"}
        assert "kernel" in made.defaults
        assert made.variant({"approx": {"name": "rf"}}).config["kernel"]["name"] == "laplacian"

    def test_points_have_the_linear_kernel(self):
        cfg = composed("approx=points", "kernel=laplacian")
        assert cfg.run_name == "rotated_digits-rotation-points-s0"
        assert plan(cfg).config["kernel"] == {"name": "polynomial", "degree": 1, "gamma": 1.0, "coef0": 0.0}

    def test_points_for_a_network_have_the_skeleton_whose_layers_it_has(self):
        made = plan(composed("architecture=full", "approx=points", "learner=network"))
        assert made.config["kernel"]["name"] == "skeleton"
        assert made.config["learner"]["layers"] == made.config["kernel"]["layers"]


@pytest.mark.parametrize("runner", ["predict", "sync"])
def test_a_run_that_fits_nothing_has_the_name_of_its_runner(runner):
    assert composed(f"runner={runner}").run_name == runner


def test_each_purpose_has_its_own_seed():
    made = plan(composed())
    assert len({made.seed(purpose) for purpose in ("dataset", "approx", "learner", "runner")}) == 4


class TestGroupOfTheDataSet:
    """A data set has a default group, which a choice replaces."""

    @pytest.mark.parametrize(
        ("dataset", "group"),
        [
            ("digits", "rotation"),
            ("xperm", "permutation"),
            *((name, "identity") for name in ("vector_field", "low_rank_multitask", "table", "qm7")),
            ("sounds", "time_warp"),
            ("spoken_digits", "translation"),
            ("images", "identity"),  # until groups are compared
        ],
    )
    def test_is_filled_in_and_part_of_the_name_of_a_run(self, dataset, group):
        cfg = composed(f"dataset={dataset}")
        config = OmegaConf.to_container(cfg, resolve=True)
        assert "group" in fill_defaults(config, Facts())
        assert config["group"]["name"] == group
        assert cfg.run_name == f"{dataset}-{'auto' if dataset == 'images' else group}-nystrom-s0"

    def test_may_be_chosen_on_the_command_line_and_in_files(self):
        made = plan(composed("dataset=xperm", "group=identity"))
        assert made.config["group"] == {"name": "identity"}
        assert "group" not in made.defaults
        assert plan(composed("experiment=xperm")).config["group"]["mode"] == "blocks"
        assert (
            plan(composed("dataset=digits")).variant({"dataset": {"name": "xperm"}}).config["group"]["name"]
            == "permutation"
        )

    def test_acts_on_its_points(self):
        for dataset, X in ((orbit.XPerm, (5, 8)), (orbit.data.VectorField, (2,)), (orbit.RotatedDigits, (8, 8))):
            section = dict(dataset.default_group)
            orbit.build("group", section.pop("name"), **section).check_shape(X)


FIELD = "dataset=vector_field group=identity approx=exact"


@pytest.mark.parametrize(
    ("key", "expected", "overrides"),
    [
        *(("encoder.name", "by_size", more) for more in ("dataset=images", "dataset=images representation=raw")),
        ("encoder.name", "none", "dataset=images encoder=none"),
        ("group.sampling", "polar", "group=rotation representation=polar"),
        ("encoder.name", "none", "dataset=images representation=polar"),  # the axes are no longer those of a picture
        ("encoder.name", "none", "dataset=images approx=skeleton kernel=skeleton"),  # takes no encoder
        ("encoder.name", "by_size", "dataset=series"),
        ("encoder.name", "patches", "dataset=sounds"),
        ("encoder.name", "none", "dataset=sounds dataset.form=waveform"),
        ("group.name", "identity", "dataset=sounds dataset.form=waveform"),
        ("distribution.name", "uniform", "dataset=sounds"),
        ("distribution.name", "lognormal", "dataset=sounds distribution=lognormal"),
        ("distribution.name", "lognormal", "dataset=sounds group=time_warp"),
        ("encoder.name", "none", "dataset=arrays"),  # images, clouds, matrices or tables
        ("approx.name", "nystrom", "dataset=vector_field"),
        ("approx.name", "exact", "dataset=vector_field learner=gp"),
        ("approx.precomputed", True, "dataset=vector_field learner=gp"),
        ("approx.name", "nystrom", "dataset=vector_field learner=gp approx.n_components=1000"),
        ("approx.n_components", 50, "dataset=vector_field approx.n_components=50"),
        ("approx.name", "nystrom", "dataset=vector_field learner=gp hyper=gaussian"),
        ("approx.name", "nystrom", "dataset=vector_field learner=gp engine.stream=true"),
        ("approx.name", "rf", "dataset=vector_field learner=gp approx=rf"),
        ("approx.precomputed", True, f"{FIELD} learner=krr learner.regularization=0.001"),
        ("approx.precomputed", True, f"{FIELD} learner=gp learner.noise=0.01"),
        ("approx.precomputed", True, f"{FIELD} learner=krr"),
        ("approx.precomputed", True, f"{FIELD} learner=ridge"),
        ("approx.precomputed", True, f"{FIELD} learner=ridge learner.selection=hold_out"),
        ("approx.precomputed", False, f"{FIELD} learner=knn"),
        ("approx.precomputed", False, f"{FIELD} learner=krr learner.regularization=0.001 hyper=gaussian"),
        ("approx.precomputed", True, f"{FIELD} learner=krr learner.regularization=0.001 engine.stream=true"),
        ("approx.precomputed", False, f"{FIELD} learner=gp engine.stream=true"),
        ("kernel.lengthscale", "ard", f"{FIELD} learner=gp kernel.lengthscale=ard"),
        ("kernel.lengthscale", "evidence", f"{FIELD} learner=gp"),
        ("kernel.lengthscale", "median", f"{FIELD} learner=gp kernel.lengthscale=median"),
        ("kernel.lengthscale", "auto", f"{FIELD} learner=krr"),
    ],
)
def test_settings_that_follow_from_others(key, expected, overrides):
    config = OmegaConf.to_container(quickly_composed(*overrides.split()))
    fill_defaults(config, Facts())
    section, name = key.split(".")
    assert config[section][name] == expected


class TestPrecision:
    @pytest.mark.parametrize(
        ("expected", "overrides"),
        [
            ("float32", ("dataset=digits",)),
            ("float64", ("dataset=vector_field",)),
            ("float32", ("dataset=vector_field", "engine.dtype=float32")),
            ("float32", ("dataset=vector_field", "engine.stream=true")),
            ("float32", ("dataset=vector_field", "encoder=gradients")),
            ("float64", ("dataset=vector_field", "encoder=pca", "encoder.n_components=2")),
            ("float64", ("dataset=vector_field", "approx=exact", "learner=krr", "dataset.n_train=12000")),
            ("float32", ("dataset=vector_field", "approx=exact", "learner=krr", "dataset.n_train=12001")),
            ("float64", ("dataset=vector_field", "approx=rf", "dataset.n_train=12001")),
        ],
    )
    def test_is_float64_for_numbers(self, expected, overrides):
        assert plan(quickly_composed(*overrides)).config["engine"]["dtype"] == expected

    @pytest.mark.parametrize(("targets", "expected"), [([0.5, 1.5], "float64"), (["a", "b"], "float32")])
    def test_is_that_for_the_targets_of_a_file(self, tmp_path, targets, expected):
        np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).random((40, 3)), y=np.array(targets * 20))
        made = plan(quickly_composed("dataset=arrays", f"dataset.path={tmp_path / 'a.npz'}", "group=identity"))
        assert made.config["engine"]["dtype"] == expected
        assert "engine.dtype" in made.defaults

    def test_of_a_smooth_function_matters(self, tmp_path):
        X = np.random.default_rng(0).random((300, 2))
        np.savez(tmp_path / "a.npz", X=X, y=np.sin(3 * X[:, 0]) * X[:, 1])
        settings = ("dataset=arrays", f"dataset.path={tmp_path / 'a.npz'}", "group=identity", "tracking.enabled=false")
        by_default, coarse = (fitted(*settings, *more).metrics["test/rmse"] for more in ((), ("engine.dtype=float32",)))
        assert by_default < coarse / 10


class TestApproxAuto:
    GP = "dataset=vector_field", "learner=gp"

    @pytest.mark.parametrize(
        ("expected", "overrides"),
        [
            ("exact", ()),  # 100 points, which are counted
            ("exact", ("dataset.n_train=3000",)),
            ("nystrom", ("dataset.n_train=3001",)),
            ("exact", ("dataset.n_train=1000", "group=orthogonal", "orbit.size=32")),
            ("nystrom", ("dataset.n_train=1001", "group=orthogonal", "orbit.size=32")),
        ],
    )
    def test_is_exact_where_that_is_cheap(self, expected, overrides):
        made = plan(quickly_composed(*self.GP, *overrides))
        assert made.config["approx"]["name"] == made.approx().name == expected
        assert "approx" in made.defaults
        assert made.config_hash == plan(quickly_composed(*self.GP, f"approx={expected}", *overrides)).config_hash

    def test_follows_the_data_and_the_learner_of_each_row(self):
        made = plan(quickly_composed("dataset=vector_field"))
        assert made.config["approx"]["name"] == "nystrom"
        assert made.variant({"learner": {"name": "gp"}}).config["approx"]["name"] == "exact"
        assert made.variant({"learner": "gp"}).config == made.variant({"learner": {"name": "gp"}}).config
        many = {"learner": {"name": "gp"}, "dataset.n_train": 4000}
        assert made.variant(many).config["approx"]["name"] == "nystrom"
        assert made.variant({"approx.n_components": 7, "learner": {"name": "gp"}}).approx().n_components == 7

    def test_refuses_wrong_keys(self):
        for changes, line in (
            ({"n_components": 0}, "approx.n_components: expected an integer >= 1, found 0"),
            ({"n_bins": 3}, "approx.n_bins: no such key of approx=auto; choose one with keys, approx=NAME"),
        ):
            with pytest.raises(InputError, match=f"^{line}"):
                plan(quickly_composed()).variant({"approx": changes})
