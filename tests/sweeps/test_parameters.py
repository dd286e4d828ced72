from __future__ import annotations

import pytest

from nbutils.sweeps.parameters import TEMPLATES, check_parameters


def test_defaults_are_valid():
    for template in TEMPLATES:
        check_parameters(template, {})


def test_a_misspelt_name_gets_the_nearest_spelling():
    with pytest.raises(ValueError, match=r"h1_communities has no parameter 'dateset' \(did you mean 'dataset'\?\)"):
        check_parameters("h1_communities", {"dateset": "digits"})


@pytest.mark.parametrize(
    ("template", "values", "words"),
    [
        ("h2_modularity", {"seeds": "ten"}, "seeds: input should be a valid integer, received 'ten'"),
        ("h2_modularity", {"seeds": 0}, "seeds: input should be greater than or equal to 1, received 0"),
        ("h2_modularity", {"epochs": -1}, "epochs: .*received -1"),
        ("h2_modularity", {"density": 0.0}, "density: .*greater than 0, received 0.0"),
        ("h2_modularity", {"density": 1.5}, "density: .*less than or equal to 1, received 1.5"),
        ("h2_modularity", {"dataset": "mnsit"}, "dataset must be one of digits, mnist-5k, mnist"),
        ("h2_modularity", {"study": "digits cifar"}, "received 'cifar'"),
        ("start_here", {"model": "cnn:3"}, "model must be 'mlp:'"),
        ("synthesis", {"study": ""}, "study: must name at least one data set, received ''"),
        ("memorising", {"study": " "}, "study: must name at least one data set, received ' '"),
        ("processors", {"study": "\n"}, "study: must name at least one data set, received"),
        ("processors", {"study": "digits digits"}, "study: must name each study once, received 'digits digits'"),
        ("evolution", {"dataset": "mnist cifar10"}, "dataset .* must be one of .*, received 'mnist cifar10'"),
        ("reconstruction", {"dataset": " mnist"}, "dataset .* must be one of .*, received ' mnist'"),
        ("nothing", {}, "template must be one of start_here"),
    ],
)
def test_wrong_values_are_named(template, values, words):
    with pytest.raises(ValueError, match=words) as caught:
        check_parameters(template, values)
    assert "\n" not in str(caught.value)


def test_only_given_names_must_be_known():
    found = check_parameters("h3_entropy", {"seeds": 2, "np": object()}, given=["seeds"])
    assert found.seeds == 2


def test_studies_of_a_page():
    page = check_parameters("h1_communities", {"dataset": "mnist-5k", "study": "digits mnist-5k", "seeds": 4})
    assert list(page.studies()) == ["mnist-5k", "digits"]
    assert {s.seeds for s in page.studies().values()} == {4}
    assert check_parameters("start_here", {}).studies() == {}
