"""Names: registering, looking up, building, and components of other packages."""

import numpy as np
import pytest
import torch

import orbit
from orbit import Exact, Identity, InputError, Kernel, Rotation, UnknownNameError, registry

pytestmark = pytest.mark.usefixtures("own_registry")


def test_classes_are_at_the_top_of_the_package_under_their_own_names():
    twice = {"Gradients"}  # a representation and an encoder
    kinds = "approx", "augmentation", "dataset", "distribution", "encoder", "group", "hyper", "kernel", "learner"
    for kind in (*kinds, "representation"):
        for cls in {cls for name in orbit.available(kind) for cls in registry.classes(kind, name)}:
            if cls.__module__.startswith("orbit.") and cls.__name__ not in twice:
                assert getattr(orbit, cls.__name__) is cls
                assert cls.__name__ in dir(orbit)
    assert not twice & set(dir(orbit))
    with pytest.raises(AttributeError, match="module 'orbit' has no attribute 'Nystrm'"):
        _ = orbit.Nystrm


def test_a_registered_class_knows_its_name():
    @orbit.register("group", "mirror")
    class Mirror(Identity):
        pass

    assert (Mirror.kind, Mirror.name) == ("group", "mirror")
    assert orbit.get("group", "mirror") is Mirror
    assert isinstance(orbit.build("group", "mirror"), Mirror)
    assert "mirror" in orbit.available("group")


def test_a_duplicate_name_raises_and_changes_nothing():
    class Impostor(Identity):
        pass

    with pytest.raises(ValueError, match="group 'rotation' is already registered by orbit.groups.rotation.Rotation"):
        orbit.register("group", "rotation")(Impostor)
    assert orbit.get("group", "rotation") is Rotation
    assert Impostor.name == "identity"


def test_a_parameter_without_a_type_is_refused():
    class Turned(Identity):
        def __init__(self, turns=1):
            self.turns = turns

    with pytest.raises(TypeError, match="group=turned: expected a type for the parameter turns of Turned, such as"):
        orbit.register("group", "turned")(Turned)
    assert "turned" not in orbit.available("group")


def test_registering_the_same_class_again_is_harmless():
    assert orbit.register("group", "rotation")(Rotation) is Rotation


def test_a_class_that_is_defined_again_replaces_the_earlier_one():
    def cell() -> type:  # of a notebook, run twice
        @orbit.register("group", "notebook")
        class Notebook(Identity):
            pass

        return Notebook

    first, second = cell(), cell()
    assert first is not second
    assert orbit.get("group", "notebook") is second


def test_a_class_need_not_be_registered(rng):
    class Shifted(Kernel):
        def against(self, B):
            return lambda A, columns, out: torch.matmul(A, B[columns].T, out=out).add_(1)

    assert Shifted().label() == "component=Shifted"
    X = rng.standard_normal((6, 3))
    psi = Exact(Shifted()).fit_transform(X)
    np.testing.assert_allclose(psi @ psi.T, 1 + X @ X.T, atol=1e-8)


def test_the_same_name_may_stand_for_different_kinds():
    assert orbit.get("classifier", "ridge") is not orbit.get("regressor", "ridge")


def test_available():
    assert orbit.available("group") == sorted(orbit.available("group"))
    assert {"identity", "rotation"} <= set(orbit.available("group"))
    assert {"group", "distribution", "kernel", "approx", "dataset", "classifier", "regressor"} <= set(orbit.available())
    with pytest.raises(UnknownNameError, match=r"unknown kind of component 'no such kind'\. Choose from approx, "):
        orbit.available("no such kind")


class TestLearners:
    """The kind ``learner`` is the union of the kinds ``classifier`` and ``regressor``."""

    def test_the_union_is_listed(self):
        assert set(orbit.available("learner")) == {*orbit.available("classifier"), *orbit.available("regressor")}

    def test_the_task_chooses_where_both_have_the_name(self):
        assert type(orbit.build("learner", "ridge", task="regression")) is orbit.get("regressor", "ridge")
        built = orbit.build("learner", "ridge", task="classification", regularization=0.1)
        assert type(built) is orbit.get("classifier", "ridge")
        assert built.regularization == 0.1
        with pytest.raises(InputError, match="learner=ridge is a classifier and a regressor: add task='classif"):
            orbit.build("learner", "ridge")

    def test_a_learner_of_one_task_needs_none(self):
        assert orbit.get("learner", "gp") is orbit.get("regressor", "gp")
        with pytest.raises(UnknownNameError, match="learner=gp is not for classification: choose from"):
            orbit.build("learner", "gp", task="classification")
        with pytest.raises(InputError, match="task: expected one of 'classification', 'regression', found 'both'"):
            orbit.build("learner", "gp", task="both")


def test_kernels_of_several_outputs_are_kernels():
    assert {"gaussian", "curl_free"} <= set(orbit.available("kernel"))
    assert orbit.build("kernel", "curl_free").label() == "kernel=curl_free"


def test_error_for_an_unknown_name_lists_the_closest_and_all():
    with pytest.raises(UnknownNameError) as error:
        orbit.build("group", "rotatoin")
    text = str(error.value)
    assert text.startswith("group=rotatoin: no such group; did you mean 'rotation'?")
    for name in orbit.available("group"):
        assert name in text


def test_a_name_without_a_close_match_gets_the_list_only():
    with pytest.raises(UnknownNameError, match=r"^group=xyzzy: no such group\. Choose from "):
        orbit.get("group", "xyzzy")


def test_error_for_an_unknown_kind_lists_the_closest_and_all():
    with pytest.raises(UnknownNameError, match="unknown kind of component 'groups'; did you mean 'group'.* kernel,"):
        orbit.available("groups")
    with pytest.raises(UnknownNameError, match="unknown kind of component 'grup'; did you mean 'group'.* kernel,"):
        orbit.get("grup", "rotation")


def test_error_for_an_unknown_parameter_lists_the_closest_and_all():
    with pytest.raises(InputError) as error:
        orbit.build("distribution", "von_mises", concentrate=3)
    expected = (
        "distribution=von_mises has no parameter 'concentrate'; did you mean 'concentration'? It has concentration."
    )
    assert str(error.value) == expected
    with pytest.raises(InputError, match=r"has no parameter 'angle'\. It has none\.$"):
        orbit.build("distribution", "haar", angle=1)


def test_build_only_stores_parameters():
    assert orbit.build("distribution", "von_mises", concentration=-3).concentration == -3


ELSEWHERE = """
import orbit

@orbit.register("group", "from_elsewhere")
class Elsewhere(orbit.groups.Identity):
    pass
"""


def test_other_packages_add_components_through_entry_points(install):
    install("package_elsewhere", {"__init__.py": "", "groups.py": ELSEWHERE}, module="groups")
    assert orbit.build("group", "from_elsewhere").name == "from_elsewhere"
    assert "from_elsewhere" in orbit.available("group")


def test_a_package_that_cannot_be_imported_is_named_with_the_reason(install):
    install("package_broken", {"__init__.py": "import no_such_module"})
    message = "package package-broken: its components in package_broken cannot be imported .ModuleNotFoundError: No mod"
    with pytest.raises(InputError, match=message):
        orbit.available("group")


def test_public_names_exist():
    for name in dir(orbit):
        assert hasattr(orbit, name), name
    assert orbit.__version__.count(".") == 2
