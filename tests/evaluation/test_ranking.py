"""Rankings: by hand on four networks, against SciPy and scikit-learn, and on simulated zoos whose truth is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import mutual_info_score

from nbutils.evaluation.ranking import (
    accuracy_noise,
    as_axes,
    conditional_information,
    correlation_within,
    granulated_kendall,
    kendall,
    sign_errors,
)

WIDTH, RATE, PERFORMANCE = [1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 4, 5]
AXES = {"width": WIDTH, "rate": RATE}
ONE = ("rate", "width", "depth", "decay")


def zoo(rng: np.random.Generator, noise: float = 0.2) -> tuple[pd.DataFrame, np.ndarray]:
    """A grid of four axes with three values each; performance follows all of them, the rate most."""
    axes = pd.DataFrame(list(product(range(3), repeat=4)), columns=list(ONE))
    return axes, axes.to_numpy() @ [6, 1, 1, 1] + noise * rng.normal(size=len(axes))


def test_kendall_by_hand_and_by_scipy(rng):
    assert kendall([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx((5 - 1) / 6)
    assert kendall([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / np.sqrt(2 * 3)), "one pair of three is tied in one"
    assert kendall([1, 2], [3, 3]) == 0
    assert np.isnan(kendall([1], [1]))
    x, y = rng.integers(6, size=(2, 40))
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic)
    assert kendall(np.exp(x), -y) == pytest.approx(-kendall(x, y))


def test_granulated_by_hand():
    """Four networks: two pairs along each axis."""
    found = granulated_kendall(WIDTH, PERFORMANCE, AXES)
    assert found.to_dict("list") == {"axis": ["width", "rate"], "kendall": [1, 0], "pairs": [2, 2]}
    found = granulated_kendall([1, 2, 4, 3], PERFORMANCE, AXES)
    assert found["kendall"].tolist() == [1, 0], "right and wrong along the rate"
    assert granulated_kendall(PERFORMANCE, PERFORMANCE, AXES)["kendall"].tolist() == [1, 1]


def test_granulated_is_the_mean_of_kendall_over_settings_of_the_other_axes(rng):
    """As published, on a full grid."""
    axes, performance = zoo(rng, 3)
    measure = performance + 3 * rng.normal(size=len(axes))
    found = granulated_kendall(measure, performance, axes).set_index("axis")["kendall"]
    table = axes.assign(m=measure, p=performance)
    for axis in ONE:
        others = [name for name in ONE if name != axis]
        each = [stats.kendalltau(group["m"], group["p"]).statistic for _, group in table.groupby(others)]
        assert len(each) == 27
        assert found[axis] == pytest.approx(np.mean(each))


def test_following_one_axis_is_not_following_performance(rng):
    """Simpson: the measure knows the rate and nothing else."""
    axes, performance = zoo(rng)
    measure = axes["rate"] + 1e-3 * rng.normal(size=len(axes))
    assert kendall(measure, performance) > 0.65
    found = granulated_kendall(measure, performance, axes).set_index("axis")["kendall"]
    assert found["rate"] == 1
    assert found.drop("rate").abs().max() < 0.3
    assert found.mean() < 0.4
    assert conditional_information(measure, performance, axes) < 0.05
    assert conditional_information(measure, performance, axes[["width", "depth"]]) > 0.3, "where the rate is not told"
    worst = sign_errors(measure, performance, axes, least=5).iloc[0]
    assert worst["axis"] != "rate"
    assert worst["error"] > 0.4


def test_a_reversal_within_settings_is_seen(rng):
    """Larger along the rate, smaller along every other axis: tau is high, three of four parts are -1."""
    axes, performance = zoo(rng)
    measure = axes.to_numpy() @ [6, -1, -1, -1]
    assert kendall(measure, performance) > 0.4
    assert granulated_kendall(measure, performance, axes)["kendall"].tolist() == [1, -1, -1, -1]
    assert sign_errors(measure, performance, axes)["error"].iloc[0] == 1


def test_slack_lets_in_more_pairs(rng):
    axes, performance = zoo(rng)
    pairs = [granulated_kendall(performance, performance, axes, slack=slack)["pairs"].to_numpy() for slack in (0, 1, 3)]
    assert (pairs[0] == 27 * 3).all()
    assert (pairs[1] == 27 * 3 + 3 * 9 * 3 * 6).all()
    assert (pairs[2] == 81 * 54 / 2).all(), "all pairs that differ in the axis"
    found = granulated_kendall([1, 2], [1, 2], {"a": [0, 1], "b": [0, 1]})
    assert found["kendall"].isna().all()
    assert granulated_kendall([1, 2], [1, 2], {"a": [0, 1], "b": [0, 1]}, slack=1)["kendall"].tolist() == [1, 1]


def test_information_by_hand():
    """Given the width, only pairs of one width are open: the measure that is the width says nothing of them."""
    assert conditional_information(PERFORMANCE, PERFORMANCE, AXES) == 1
    assert conditional_information([-p for p in PERFORMANCE], PERFORMANCE, AXES) == 1, "the sign does not matter"
    assert conditional_information(WIDTH, PERFORMANCE, AXES) == 0
    # Of 12 ordered pairs, 8 have signs that agree with performance, 4 are ties that leave one bit: 1 - 4 / 12.
    assert conditional_information(WIDTH, PERFORMANCE, AXES, given=0) == pytest.approx(2 / 3)
    assert np.isnan(conditional_information([1, 2], [3, 3], {"a": [0, 1]}))


def test_information_is_that_of_scikit_learn(rng):
    """Without an axis; and given one, from the entropies of each setting by themselves."""
    m, p = rng.normal(size=(2, 30))
    axis = rng.integers(3, size=30)
    one, two = (index[~np.eye(30, dtype=bool)] for index in np.indices((30, 30)))
    signs = m[one] > m[two], p[one] > p[two]
    bare = mutual_info_score(*signs) / mutual_info_score(signs[1], signs[1])
    assert conditional_information(m, p, {"a": axis}, given=0) == pytest.approx(bare)
    information, entropy = 0.0, 0.0
    for pair in product(range(3), repeat=2):
        here = (axis[one] == pair[0]) & (axis[two] == pair[1])
        information += here.sum() * mutual_info_score(signs[0][here], signs[1][here])
        entropy += here.sum() * mutual_info_score(signs[1][here], signs[1][here])
    expected = min(bare, information / entropy)
    assert conditional_information(m, p, {"a": axis}, given=1) == pytest.approx(expected)


def test_information_about_nothing_and_everything():
    """200 zoos: less than .02 for a measure that is noise, in every one; 1 for any monotone relation."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(200):
        axes, performance = zoo(rng)
        found.append(conditional_information(rng.normal(size=len(axes)), performance, axes[["rate", "width"]]))
    assert np.mean(found) < 0.005
    assert max(found) < 0.05
    assert conditional_information(np.exp(-performance), performance, axes) == 1


def skilled_worlds(share: float) -> np.ndarray:
    """(granulated tau, information beyond two axes) in 200 zoos: performance holds skill, the measure a share of it."""
    rng, found = np.random.default_rng(11), []
    for _ in range(200):
        axes, performance = zoo(rng)
        skill = rng.normal(size=len(axes))
        measure = share * skill + np.sqrt(1 - share**2) * rng.normal(size=len(axes)) + axes["rate"]
        both = measure, performance + skill, axes
        psi = granulated_kendall(*both).set_index("axis")["kendall"].drop("rate").mean()  # the rate moves both
        found.append((psi, conditional_information(*both)))
    return np.array(found)


def test_size_and_power_where_a_measure_knows_an_axis_and_perhaps_skill():
    """Without skill: tau along the other axes is centred on 0, information small. With skill, both tell."""
    nothing, half, most = (skilled_worlds(share) for share in (0.0, 0.5, 0.9))
    assert abs(nothing[:, 0].mean()) < 0.02
    assert np.quantile(np.abs(nothing[:, 0]), 0.95) < 0.2
    bars = np.quantile(nothing, 0.95, axis=0)  # a false alarm in one zoo of twenty
    assert bars[1] < 0.05
    assert ((half > bars).mean(axis=0) > [0.7, 0.45]).all()
    assert ((most > bars).mean(axis=0) > [0.99, 0.95]).all()


def test_a_setting_held_fixed_leaves_what_is_no_part_of_it(rng):
    images, skill = np.repeat([1, 2, 4], 30), rng.normal(size=90)
    noisy = skill + rng.normal(size=90)
    each = [stats.spearmanr(noisy[images == n], skill[images == n]).statistic for n in (1, 2, 4)]
    assert correlation_within(noisy + 9 * images, skill, images) == pytest.approx(np.mean(each))
    assert np.isnan(correlation_within(images, skill, images))
    assert np.isnan(correlation_within([1, 2, 3], [1, 2, 3], ["a", "a", "b"])), "one network says nothing"
    with pytest.raises(ValueError, match=r"setting must have one value per network, received \(2,\) and 3"):
        correlation_within([1, 2, 3], [1, 2, 3], [1, 2])


def test_order_of_networks_and_axes_changes_nothing(rng):
    axes, performance = zoo(rng, 3)
    measure, order = performance + rng.normal(size=len(axes)), rng.permutation(len(axes))
    again = axes.iloc[order][list(ONE[::-1])]
    assert conditional_information(measure[order], performance[order], again) == pytest.approx(
        conditional_information(measure, performance, axes)
    )
    one, two = (
        granulated_kendall(*values).set_index("axis").sort_index()
        for values in ((measure, performance, axes), (measure[order], performance[order], again))
    )
    pd.testing.assert_frame_equal(one, two)
    worst = [
        sign_errors(*values, least=1)["error"].tolist()
        for values in ((measure, performance, axes), (measure[order], performance[order], again))
    ]
    assert worst[0] == pytest.approx(worst[1])


def test_sign_errors_by_hand():
    found = sign_errors(WIDTH, PERFORMANCE, AXES, least=1)
    assert found["axis"].tolist() == ["rate", "width"]
    assert found["error"].tolist() == [0.5, 0.0], "ties are half wrong"
    assert sign_errors(WIDTH, PERFORMANCE, AXES, least=1, direction=-1)["error"].tolist() == [1.0, 0.5]
    assert sign_errors(WIDTH, PERFORMANCE, AXES).empty, "two pairs are too few"


def test_noise_leaves_out_what_nobody_knows():
    """Steps of 1 along the rate are within the noise, steps of 3 along the width are not."""
    found = sign_errors([2, 1, 4, 3], PERFORMANCE, AXES, noise=1, least=1)
    assert found[["axis", "error", "pairs"]].to_numpy().tolist() == [["width", 0.0, 2]]
    assert sign_errors([2, 1, 4, 3], PERFORMANCE, AXES, noise=0.9, least=1)["error"].tolist() == [1.0, 0.0]


def test_worst_case_of_a_perfect_measure_and_of_noise():
    """Perfect: 0 in each of 12 environments of 27 pairs. Noise: 1/2 on average over 200 zoos, more in the worst."""
    rng = np.random.default_rng(8)
    means, worst, filtered = [], [], []
    for _ in range(200):
        axes, performance = zoo(rng)
        found = sign_errors(rng.normal(size=len(axes)), performance, axes)
        assert found["pairs"].eq(27).all()
        assert len(found) == 12
        means.append(found["error"].mean())
        worst.append(found["error"].iloc[0])
        truth = axes.to_numpy() @ [6, 1, 1, 1]
        filtered.append([sign_errors(truth, performance, axes, noise=noise)["error"].iloc[0] for noise in (0, 1.2)])
    assert np.mean(means) == pytest.approx(0.5, abs=0.02)
    assert 0.5 < np.mean(worst) < 0.75
    assert np.mean(filtered, axis=0)[1] <= np.mean(filtered, axis=0)[0]
    assert max(pair[1] for pair in filtered) == 0, "what is left beyond the noise is ranked without an error"
    assert sign_errors(np.exp(performance), performance, axes)["error"].max() == 0
    assert sign_errors(-performance, performance, axes, direction=-1)["error"].max() == 0


def test_the_noise_of_accuracies_by_hand():
    for images, level in ((10_000, 0.5), (9_000, 0.9), (100, 0.01)):
        d = accuracy_noise(images, level)
        assert (1 - 2 * np.exp(-2 * images * (d / 2) ** 2)) ** 2 == pytest.approx(level)
    assert accuracy_noise(400) == pytest.approx(accuracy_noise(100) / 2)


def test_two_seeds_of_one_network_are_mostly_within_the_noise():
    """Hoeffding's bound is a bound: of 500 pairs of equal networks, fewer than 1 % differ by more."""
    rng = np.random.default_rng(9)
    accuracies = rng.binomial(2000, 0.8, size=(500, 2)) / 2000
    assert np.mean(np.abs(np.diff(accuracies)) > accuracy_noise(2000)) < 0.01


def test_axes_may_be_text_or_a_table():
    found = as_axes(pd.DataFrame({"size": ["s", "l", "s"], "rate": [0.1, 0.01, 0.1]}), 3)
    assert {name: codes.tolist() for name, codes in found.items()} == {"size": [1, 0, 1], "rate": [1, 0, 1]}
    environments = sign_errors([1, 2], [1, 2], {"size": ["s", "l"]}, least=1)
    assert environments[["lower", "upper"]].to_numpy().tolist() == [["l", "s"]]


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ([1, 2], TypeError, "axes must be a mapping of names to values, or a table, received list"),
        ({}, ValueError, "axes must have at least one axis"),
        ({1: [1, 2]}, ValueError, "each with a name of its own, received "),
        ({"a": [1, 2, 3]}, ValueError, r"one value per network, received \(3,\) for 'a' and 2"),
        ({"a": [1, np.nan]}, ValueError, "axes 'a' must be finite numbers, or text, in a row"),
    ],
)
def test_axes_that_are_none_are_refused(axes, error, message):
    for function in (granulated_kendall, conditional_information, sign_errors):
        with pytest.raises(error, match=message):
            function([1, 2], [1, 2], axes)


def test_options_out_of_range_are_refused():
    values = ([1, 2], [1, 2], {"a": [0, 1]})
    with pytest.raises(ValueError, match="slack must be a whole number of at least 0, received -1"):
        granulated_kendall(*values, slack=-1)
    with pytest.raises(ValueError, match="noise must be a number of at least 0, received nan"):
        sign_errors(*values, noise=float("nan"))
    with pytest.raises(ValueError, match="direction must be 1 or -1, received 2"):
        sign_errors(*values, direction=2)
    with pytest.raises(ValueError, match="given must be a whole number of at least 0, received -1"):
        conditional_information(*values, given=-1)
    with pytest.raises(
        ValueError, match=r"measure and performance must be one per network, received \(1,\) and \(2,\)"
    ):
        kendall([1], [1, 2])


def test_values_of_an_axis_may_be_a_tensor():
    import torch

    width, rate = [1, 1, 2, 2], [1, 2, 1, 2]
    plain = sign_errors(width, [1, 2, 4, 5], {"width": width, "rate": rate}, least=1)
    tensors = sign_errors(width, [1, 2, 4, 5], {"width": torch.tensor(width), "rate": torch.tensor(rate)}, least=1)
    assert plain.equals(tensors)
