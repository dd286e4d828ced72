"""What no public function may accept, and what must not change a number; test_hostile.py tries all of them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

import nbutils
from nbutils.cofiring import PackedFiring, cofiring_counts, count_histogram, pack_firing, pairs_from
from nbutils.measures import measure_entropies
from nbutils.support.checks import as_graph, as_groups, as_labels, as_numpy, as_rng, share_count

CRASHES = """
import numpy as np, scipy.sparse as sp
import nbutils
from nbutils.cofiring import PackedFiring, cofiring_counts, count_histogram, pack_firing, pairs_from
words = np.full((64, 1), 2**64 - 1, np.uint64)
graph = sp.csr_array(np.kron(np.eye(2), np.ones((9, 9)) - np.eye(9)))
def damaged(change, kind="csr"):
    copy = graph.copy().asformat(kind)
    change(copy)
    return copy
def set_index(matrix):
    matrix.indices[0] = 10**6
def set_pointer(matrix):
    matrix.indptr[1] = 10**6
def set_coordinate(matrix):
    matrix.coords[0][0] = 10**6
calls = {calls}
for number, call in enumerate(calls):
    try:
        found = call()
    except ValueError as error:
        print(number, "refused:", error)
    else:
        print(number, "accepted:", found)
"""
CALLS = """[
    lambda: nbutils.graph_from_pairs(3, [0], [7], [1]),
    lambda: nbutils.graph_from_pairs(3, [1], [1], [1]),
    lambda: nbutils.graph_from_pairs(3, [-9], [1], [1]),
    lambda: nbutils.graph_from_pairs(3, [0, 1], [2], [1, 1]),
    lambda: nbutils.graph_from_pairs(3, [0, 1], [2, 2], [1]),
    lambda: nbutils.graph_from_pairs(3, [0, 0], [1, 1], [1, 2]),
    lambda: nbutils.detect_communities(damaged(set_index)),
    lambda: nbutils.detect_communities(damaged(set_pointer)),
    lambda: nbutils.modularity(damaged(set_index, "csc"), np.zeros(18, int)),
    lambda: nbutils.to_networkx(damaged(set_coordinate, "coo")),
    lambda: cofiring_counts(PackedFiring(np.zeros((1, 1), np.uint64), 5000, 10)),
    lambda: cofiring_counts(PackedFiring(words.astype(float), 3, 10)),
    lambda: count_histogram(PackedFiring(words, 64, 3)),
    lambda: count_histogram(pack_firing(np.ones((3, 3), bool)), strips=[64_000_000]),
    lambda: pairs_from(pack_firing(np.ones((3, 3), bool)), 1, strips=[-64_000_000]),
]"""


@pytest.fixture
def graph(rng) -> np.ndarray:
    groups = np.repeat([0, 1, 2], 10)
    weight = rng.integers(1, 9, (30, 30)) * (rng.random((30, 30)) < np.where(groups[:, None] == groups, 0.8, 0.1))
    return (np.triu(weight, 1) + np.triu(weight, 1).T).astype(float)


def test_nothing_reaches_compiled_code_unchecked():
    """In a process of its own, because without the checks several of these calls end it."""
    run = subprocess.run(
        [sys.executable, "-c", CRASHES.replace("{calls}", CALLS)], capture_output=True, text=True, timeout=120
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, run.stderr
    assert len(lines) == CALLS.count("lambda")
    assert all(" refused: " in line for line in lines), run.stdout


def test_pairs_may_come_in_any_order(rng):
    rows, columns = np.triu_indices(20, k=1)
    weights = rng.random(rows.size) + 0.1
    order = rng.permutation(rows.size)
    sorted_one = nbutils.graph_from_pairs(20, rows, columns, weights)
    shuffled = nbutils.graph_from_pairs(20, rows[order], columns[order], weights[order])
    for part in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(sorted_one, part), getattr(shuffled, part))
    assert nbutils.graph_from_pairs(0, [], [], []).shape == (0, 0)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ((3, [0], [7], [1]), r"rows and columns must be of neurons 0 to 2, received the pair \(0, 7\)"),
        ((3, [1], [1], [1]), r"have the smaller neuron in rows, .* received the pair \(1, 1\)"),
        ((3, [2], [1], [1]), r"have the smaller neuron in rows, .* received the pair \(2, 1\)"),
        ((3, [0, 1, 0], [1, 2, 1], [1, 1, 1]), r"come once each, received the pair \(0, 1\)"),
        ((3, [0, 1], [1, 2], [1]), r"of one length, received shapes \(2,\), \(2,\) and \(1,\)"),
        ((3, [0.5], [1], [1]), "rows must be integers"),
        ((3, [0], [2**40], [1]), "must be of neurons 0 to 2"),
        ((3, [0], [1], [np.nan]), "weights must be finite and above 0"),
        ((3, [0], [1], [0]), "weights must be finite and above 0"),
        ((2.5, [0], [1], [1]), "neurons must be a whole number from 0 to 10000000, received 2.5"),
        ((10**12, [0], [1], [1]), "neurons must be a whole number from 0 to 10000000"),
    ],
)
def test_bad_pairs_are_named(pairs, words):
    with pytest.raises(ValueError, match=words):
        nbutils.graph_from_pairs(*pairs)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1])
def test_counts_that_are_none_are_refused(graph, bad):
    graph[2, 5] = graph[5, 2] = bad
    with pytest.raises(ValueError, match=r"counts (holds|must be)"):
        nbutils.graph_from_counts(graph)


def test_asymmetric_counts_are_refused_and_the_diagonal_is_ignored(graph):
    expected = nbutils.graph_from_counts(graph, 0.3).toarray()
    np.fill_diagonal(graph, np.nan)
    assert np.array_equal(nbutils.graph_from_counts(graph, 0.3).toarray(), expected)
    graph[2, 5] += 1
    with pytest.raises(ValueError, match="counts must be symmetric"):
        nbutils.graph_from_counts(graph)


@pytest.mark.parametrize("resolution", [np.inf, np.nan, 0, -1, "1", None, True])
def test_resolution_is_a_finite_number_above_0(graph, resolution):
    for call in (nbutils.detect_communities, lambda g, r: nbutils.modularity(g, np.zeros(30, int), r)):
        with pytest.raises(ValueError, match="resolution must be above 0 and finite, received"):
            call(graph, resolution)


@pytest.mark.parametrize("exponent", [-1074, -1040, -600, -300, 300, 600, 1019])
def test_the_scale_of_weights_changes_no_digit(graph, exponent):
    plain, labels = nbutils.detect_communities(graph), np.arange(30) // 5
    scaled = np.ldexp(graph, exponent)
    found = nbutils.detect_communities(scaled)
    assert np.array_equal(found.seed_labels, plain.seed_labels)
    assert np.array_equal(found.modularity_per_seed, plain.modularity_per_seed)
    assert nbutils.modularity(scaled, labels) == nbutils.modularity(graph, labels)
    assert np.array_equal(
        nbutils.well_defined_communities(scaled, labels), nbutils.well_defined_communities(graph, labels)
    )


def test_weights_far_below_the_largest_do_not_upset_the_search(graph):
    graph[:10, :10] *= 1e300
    graph[10:, 10:] *= 1e-300
    found = nbutils.detect_communities(graph)
    assert found.modularity == pytest.approx(nbutils.detect_communities(graph[:10, :10]).modularity)
    assert np.isfinite(found.modularity_per_seed).all()


@pytest.mark.parametrize("scale", [1e-315, 1e-200, 1e160, 1e300])
def test_huge_and_tiny_activations_give_the_same_numbers(rng, scale):
    plain = np.maximum(np.round(rng.standard_normal((60, 9)), 1), 0)
    exponent = int(np.floor(np.log2(scale)))
    values = np.ldexp(plain, exponent)
    assert nbutils.pearson_graph(values).toarray() == pytest.approx(nbutils.pearson_graph(plain).toarray(), abs=1e-6)
    assert (nbutils.pearson_graph(values).toarray() > 0).sum() == (nbutils.pearson_graph(plain).toarray() > 0).sum()
    assert nbutils.effective_rank(values) == pytest.approx(nbutils.effective_rank(plain), rel=1e-6)
    if scale > 1e-300:
        assert np.array_equal(nbutils.activation_histogram(values), nbutils.activation_histogram(plain))
        means = nbutils.class_means(values, np.arange(60) % 3)
        assert np.array_equal(means, np.ldexp(nbutils.class_means(plain, np.arange(60) % 3), exponent))
        assert np.array_equal(nbutils.class_selectivity(means), nbutils.class_selectivity(np.ldexp(means, -exponent)))


def test_bins_of_numbers_next_to_nothing():
    for least in (np.float64(5e-324), np.float32(1e-45)):
        values = np.array([[1], [5], [10]], least.dtype) * least
        assert nbutils.activation_histogram(values, 2).ravel().tolist() == [2, 1]


def test_a_share_next_to_nothing_keeps_the_heaviest_pair(graph):
    assert share_count(1e-300, 10) == 1
    assert share_count(0.5, 0) == 0
    heaviest = (graph == graph.max()).sum()
    assert nbutils.graph_from_counts(graph, 1e-300).nnz == heaviest
    assert nbutils.firing([[1.0], [2.0]], "top:1e-300").ravel().tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1, 2], [3]], "values must be an array, .* rows of one length"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "values must not be a masked array"),
        (np.array([1 + 0j]), "values must hold real numbers, received dtype complex128"),
        (["1", "2"], "values must hold numbers, received text"),
        ([1, None], "values must hold numbers of one kind, received NoneType among them"),
        ([1, "a", 2.5, None], "received str among them"),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), "received str among them"),
        (pd.date_range("2020", periods=2), "values must hold numbers, received dates"),
        (None, "values must hold real numbers, received NoneType"),
        ({"a": 1}, "received dict"),
        (sp.csr_array(np.eye(2)), "values must be dense"),
        ([10**30], "values holds numbers too large for 64 bits|values must hold"),
    ],
)
def test_what_is_no_array_of_numbers(values, words):
    with pytest.raises(ValueError, match=words):
        as_numpy(values)


def test_every_holder_of_numbers_is_taken():
    expected = [[1.5, 2.0], [0.0, 4.0]]
    array = np.array(expected)
    for values in (
        expected,
        array.astype(np.longdouble),
        array.astype(">f8"),
        array.astype(object),
        pd.DataFrame(expected),
        torch.tensor(expected, requires_grad=True),
        torch.tensor(expected).bfloat16(),
        torch.tensor(expected).to_sparse(),
    ):
        found = as_numpy(values)
        assert found.tolist() == expected
        assert found.dtype.isnative


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["cat", "dog"], r"labels must be integers, received text; number the classes with np\.unique"),
        (np.array(["cat", "dog"], dtype=object), "received text"),
        (pd.Series(["cat", "dog"]), "received text"),
        ([0.0, np.inf], "labels must be integers"),
        ([0.0, np.nan], "labels must be integers"),
        ([0.0, 2.0**53 + 2], "labels must be integers"),
        (np.array([0, 2**64 - 1], np.uint64), r"labels must be below 2\*\*63"),
        ([0, 1, 2], r"labels must have shape \(2,\), received \(3,\)"),
        ([[0, 1]], r"received \(1, 2\)"),
    ],
)
def test_bad_labels_are_named(labels, words):
    with pytest.raises(ValueError, match=words):
        as_labels(labels, 2)


def test_labels_are_64_bit_integers_whatever_holds_them():
    for labels in (np.array([3, 1], np.uint8), [3.0, 1.0], torch.tensor([3, 1]), pd.Series([3, 1], index=[7, 8])):
        found = as_labels(labels, 2)
        assert found.tolist() == [3, 1]
        assert found.dtype == np.int64
    assert as_groups(["b", "a"], "condition").tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (None, "graph must hold real numbers, received NoneType"),
        ("abc", "graph must hold numbers, received text"),
        (np.zeros((2, 2, 2)), r"graph must be square, received shape \(2, 2, 2\)"),
        (np.array([[0, "a"], ["a", 0]], dtype=object), "graph must hold numbers of one kind"),
        (np.eye(2)[::-1] + 0j, "graph must hold real numbers, received dtype complex128"),
        (sp.csr_array(np.eye(2)[::-1] + 0j), "graph must hold real numbers, received dtype complex128"),
        (np.ma.masked_equal(np.eye(2)[::-1], 0), "graph must not be a masked array"),
        (np.array([[0, np.longdouble("1e4000")]] * 2, dtype=np.longdouble).T + 0, "beyond the range of float64|loops"),
        (nx.path_graph(3), r"pass networkx\.to_scipy_sparse_array"),
        (sp.coo_array(np.ones(4)), r"graph must be square, received shape \(4,\)"),
    ],
)
def test_what_is_no_graph(graph, words):
    with pytest.raises(ValueError, match=words):
        nbutils.detect_communities(graph)


def test_every_holder_of_a_graph_is_taken(graph):
    expected = as_graph(graph)
    kinds = (sp.csc_array, sp.coo_matrix, sp.lil_array, sp.dok_array, sp.bsr_array, sp.dia_array)
    holders = [kind(graph) for kind in kinds]
    holders += [torch.tensor(graph), torch.tensor(graph).to_sparse(), pd.DataFrame(graph), graph.astype(np.float16)]
    for holder in holders:
        found = as_graph(holder)
        for part in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(found, part), getattr(expected, part)), type(holder)


@pytest.mark.parametrize("rng", [None, -1, True, 0.5, "0", np.random.RandomState(0)])
def test_a_source_of_randomness_is_a_generator_or_a_seed(rng):
    with pytest.raises(ValueError, match=r"rng must be a numpy\.random\.Generator or a seed, .* received "):
        as_rng(rng)
    with pytest.raises(ValueError, match="rng must be"):
        nbutils.circular_shift_null([[1, 0]], rng)


def test_a_seed_is_as_good_as_its_generator(rng):
    fired, labels, values = rng.random((40, 6)) < 0.4, np.arange(40) % 3, rng.random(12)
    calls = [
        lambda r: nbutils.circular_shift_null(fired, r),
        lambda r: nbutils.within_class_null(fired, labels, r),
        lambda r: nbutils.bootstrap_interval(values, r, draws=200),
        lambda r: nbutils.sign_flip(values, r, flips=200).p_value,
        lambda r: nbutils.shuffled_classes(fired, labels, [0, 0, 0, 1, 1, 1], r, draws=3),
    ]
    for call in calls:
        assert np.array_equal(call(5), call(np.random.default_rng(5)))


def test_packed_firing_made_by_hand_is_checked(rng):
    packed = pack_firing(rng.random((70, 5)) < 0.5)
    assert np.array_equal(cofiring_counts(replace(packed, words=packed.words.copy(order="F"))), cofiring_counts(packed))
    for change, words in (
        ({"examples": 10_000}, r"words must be an array of uint64 of shape \(64, 157\)"),
        ({"neurons": 65}, r"of shape \(128, 2\)"),
        ({"neurons": 4}, "words must be 0 beyond the last neuron and example"),
        ({"examples": 66}, "words must be 0 beyond"),
        ({"words": packed.words.astype(np.int64)}, "array of uint64"),
        ({"neurons": -1}, "neurons must be a whole number"),
    ):
        with pytest.raises(ValueError, match=words):
            replace(packed, **change)
    for call in (lambda: count_histogram(packed, [3]), lambda: pairs_from(packed, 1, [64])):
        with pytest.raises(ValueError, match="strips must be some of"):
            call()
    with pytest.raises(ValueError, match="packed must be packed firing"):
        count_histogram(np.eye(3))
    with pytest.raises(ValueError, match="threshold must be a whole number of at least 1"):
        pairs_from(packed, 0)
    assert isinstance(packed, PackedFiring)


def test_text_is_no_mask():
    fired = np.eye(4, dtype=bool)
    with pytest.raises(ValueError, match="last_layer must hold numbers, received text"):
        measure_entropies(fired, [0, 0, 1, 1], ["False", "False", "True", "True"])
    with pytest.raises(ValueError, match="last_layer must have at least one neuron"):
        measure_entropies(fired, [0, 0, 1, 1], [0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"last_layer must have shape \(4,\)"):
        measure_entropies(fired, [0, 0, 1, 1], [True])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nbutils.activation_histogram([[1.0]], bins=10**9), "bins must be a whole number from 1 to 65536"),
        (lambda: nbutils.detect_communities(np.zeros((2, 2)), seeds=10**9), "seeds must be .* from 1 to 100000"),
        (lambda: nbutils.sign_flip([1.0], 0, flips=10**12), "flips must be a whole number from 1 to 1000000"),
        (lambda: nbutils.total_correlation([[1, 0]], seed=-1), "seed must be"),
        (lambda: nbutils.total_correlation([[1, 0]], block=True), "block must be a whole number from 2 to 16"),
        (lambda: nbutils.CofiringCounter(10**9), r"at most 2\*\*40 counts"),
        (lambda: nbutils.graph_from_counts(np.zeros((3, 3)), density=True), "density must be a number"),
        (lambda: nbutils.firing([[1.0]], rule=None), "rule must be"),
        (lambda: nbutils.firing_entropy([[1]], correction=["miller-madow"]), "correction must be"),
        (lambda: nbutils.resolve_device(["cpu"]), "device must be"),
        (
            lambda: nbutils.measure_communities([[1]], spec={"density": 1}),
            r"spec must be of type MeasureSpec \| None, received {'density': 1}",
        ),
    ],
)
def test_options_out_of_range_are_named(call, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_counts_of_elsewhere_are_checked():
    counter = nbutils.CofiringCounter()
    for counts, examples, words in (
        ([[2, 1], [0, 2]], 2, "counts must be symmetric"),
        ([[2, 3], [3, 2]], 2, "counts must be from 0 to 2"),
        ([[-1, 0], [0, 1]], 2, "counts must be from 0 to 2"),
        ([[1, 0], [0, 1]], -1, "examples must be a whole number from 0 to"),
    ):
        with pytest.raises(ValueError, match=words):
            counter.add_counts(counts, examples)
    assert counter.examples == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: nbutils.community_selectivity({"labels": 1}),
            r"answers must be of type DataFrame, received {'labels': 1}",
        ),
        (
            lambda: nbutils.community_selectivity(pd.DataFrame({"labels": [1]})),
            r"answers must have the columns \['run', 'epoch'",
        ),
        (lambda: nbutils.event_rates(pd.DataFrame({"run": [1]}), 0), r"evolution must have the columns \['labels'"),
        (lambda: nbutils.settling(None, None, 0), r"evolution must be of type DataFrame, received None"),
        (lambda: nbutils.early_prediction([], ["q"], 0), r"table must be of type DataFrame, received \[\]"),
        (lambda: nbutils.perturbations("digits"), "results must be of type Results, received 'digits'"),
        (lambda: nbutils.control_outcomes(None), "results must be of type Results, received None"),
        (lambda: nbutils.grid_values({}), "results must be of type Results"),
        (lambda: nbutils.entropy_series([]), "results must be of type Results"),
        (lambda: nbutils.switched(1), "results must be of type Results"),
        (lambda: nbutils.collect_evidence("digits"), r"results must be of type Sequence\[Results\], received 'digits'"),
        (lambda: nbutils.long_runs(["digits"]), r"studies must be of type Sequence\[Results\], received \['digits'\]"),
        (lambda: nbutils.random_networks(None), r"studies must be of type Sequence\[Results\]"),
        (lambda: nbutils.matched_table(3), r"studies must be of type Sequence\[Results\]"),
        (lambda: nbutils.simulated_study(["nothing"], 0), "scenario must be of type str"),
        (lambda: nbutils.curve_test([[1.0]], [1], [1], 0), "values must be a table, .* received list"),
    ],
)
def test_tables_and_studies_are_told_by_their_type(call, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("examples", "neurons"), [(5, 0), (1, 1), (1, 4), (6, 1), (6, 4), (130, 65)])
@pytest.mark.parametrize("kind", [np.zeros, np.ones])
def test_networks_of_nothing_have_defined_measures(examples, neurons, kind):
    """No neuron, one example, one class, all dead, all alike: a value or a sentence, never a warning."""
    fired = kind((examples, neurons), bool)
    labels, layers = np.zeros(examples, int), np.zeros(neurons, int)
    for build in (nbutils.phi_graph, nbutils.ppmi_graph, nbutils.disparity_graph, nbutils.activation_pattern_graph):
        assert build(fired).shape == (neurons, neurons)
    assert nbutils.paper_graph(fired, labels, layers).shape == (neurons, neurons)
    assert nbutils.pearson_graph(fired * 2.0).nnz == 0
    assert nbutils.effective_rank(fired * 2.0) == pytest.approx(float(neurons > 0 and kind is np.ones))
    assert not nbutils.mutual_information(fired, labels).any()
    assert nbutils.total_correlation(fired) == 0
    measured = nbutils.measure_active(fired, labels, 0, nbutils.MeasureSpec(seeds=1, null_draws=1))
    assert np.isfinite(list(measured.values())).all()
    if neurons == 0:
        with pytest.raises(ValueError, match="last_layer must have at least one neuron"):
            nbutils.measure_entropies(fired, labels, layers == 0)
    else:
        assert np.isfinite(list(nbutils.measure_entropies(fired, labels, layers == 0).values())).all()


SPAN = np.timedelta64(3)


class Unwilling:
    """Neither shows itself nor becomes an array."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __array__(self, *_: object, **_options: object) -> np.ndarray:
        raise KeyError("no")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nbutils.activation_histogram([[1.0]], SPAN), "bins must be a whole number .*timedelta64"),
        (lambda: nbutils.circular_shift_null([[1]], SPAN), "rng must be a numpy.random.Generator or a seed"),
        (lambda: nbutils.detect_communities(np.zeros((2, 2)), resolution=SPAN), "resolution must be above 0"),
        (lambda: nbutils.CofiringCounter(SPAN), "neurons must be a whole number"),
        (lambda: nbutils.CofiringCounter(np.uint64(2**63)), "neurons and classes must need at most"),
        (lambda: nbutils.CofiringCounter(10**5000), "neurons and classes must need at most .* a value of type int"),
        (lambda: nbutils.activation_histogram([[1.0]], 10**5000), "bins must be .* a value of type int"),
        (lambda: nbutils.firing([[1.0]], Unwilling()), "rule must be .* a value of type Unwilling"),
        (lambda: nbutils.firing(Unwilling()), "activations must be an array.* received Unwilling"),
        (lambda: nbutils.record("x", 1, low="y" * 10**6), "low of 'x' must be a number, received .{,60}$"),
    ],
)
def test_spans_of_time_huge_numbers_and_unwilling_objects_are_told_in_one_sentence(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_numbers_of_any_type_count_the_same():
    """Small whole numbers of NumPy overflow when squared, unsigned ones when negated; fractions know no logarithm."""
    counter = nbutils.CofiringCounter(np.int8(100), np.int8(100))
    counter.update(np.ones((3, 100), bool), [0, 1, 1])
    assert counter.counts(np.int8(1))[0, 0] == 2
    assert nbutils.correlation_test(Fraction(1, 2), 9) == nbutils.correlation_test(0.5, 9)
    assert np.array_equal(nbutils.saturating_curve([0, 4], Fraction(3)), nbutils.saturating_curve([0, 4], 3))
    rises = [nbutils.left_out_rise([[2, 1, 2], [4, 3, 5], [3, 1, 4]], window=size) for size in (1, np.uint64(1))]
    assert np.array_equal(*rises)
    before, after = [0, 0, 1, 1, 1], [0, 0, 1, 1, 2]
    pd.testing.assert_frame_equal(
        nbutils.community_events(before, after, change=np.uint64(2**63)),
        nbutils.community_events(before, after, change=2.0**63),
    )


def test_selectivity_of_half_precision_means_has_the_digits_of_others(rng):
    means = rng.random((10, 7)).astype(np.float16)
    assert nbutils.class_selectivity(means).tolist() == nbutils.class_selectivity(means.astype(float)).tolist()


@pytest.mark.parametrize(
    "held",
    [
        lambda a: np.broadcast_to(a, a.shape),  # read-only
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: np.flip(np.flip(a).copy()),
        lambda a: a.astype(a.dtype.newbyteorder(">")),
        lambda a: a.tolist(),
        list,
        lambda a: torch.tensor(a).clone().T.contiguous().T if a.ndim == 2 else torch.tensor(a),
        lambda a: torch.tensor(a, dtype=torch.float64, requires_grad=True),
        lambda a: pd.DataFrame(a).convert_dtypes() if a.ndim == 2 else pd.Series(a).astype("Int64"),
        lambda a: pd.DataFrame(a) if a.ndim == 2 else pd.Series(a).astype("category"),
    ],
)
def test_what_sensible_people_pass_is_taken(held, rng):
    """However numbers are held, they give the same numbers."""
    activations, labels = np.maximum(rng.standard_normal((30, 8)), 0), np.arange(30) % 3
    fired = activations > 0.5
    for name, arguments in {
        "firing": [activations],
        "class_means": [activations, labels],
        "activation_histogram": [activations],
        "effective_rank": [activations],
        "mutual_information": [fired.astype(int), labels],
        "paper_graph": [fired.astype(int), labels, np.repeat([0, 1], 4)],
        "balanced_indices": [labels, 6],
        "modularity": [nbutils.phi_graph(fired).toarray(), np.arange(8) % 2],
    }.items():
        function = getattr(nbutils, name)
        same = [held(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
        found, expected = function(*same), function(*arguments)
        as_array = (one.toarray() if sp.issparse(one) else np.asarray(one) for one in (found, expected))
        np.testing.assert_allclose(*as_array, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("change", ["int64", "unsorted", "zeros", "read-only", "gaps", "int8", "coo", "matrix"])
def test_sparse_graphs_are_taken_however_they_are_held(change):
    dense = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    graph = sp.csr_array(dense)
    if change == "int64":
        graph.indices, graph.indptr = graph.indices.astype(np.int64), graph.indptr.astype(np.int64)
    elif change == "unsorted":
        for row in range(6):
            part = slice(*graph.indptr[row : row + 2])
            graph.indices[part] = graph.indices[part][::-1].copy()
        graph.has_sorted_indices = graph.has_canonical_format = False
    elif change == "zeros":
        graph = sp.csr_array((np.r_[graph.data, 0.0], np.r_[graph.indices, 0], np.r_[graph.indptr[:-1], 13]))
    elif change == "read-only":
        for part in (graph.data, graph.indices, graph.indptr):
            part.flags.writeable = False
    elif change == "gaps":
        graph.data, graph.indices = np.repeat(graph.data, 2)[::2], np.repeat(graph.indices, 2)[::2]
    elif change == "int8":
        graph = graph.astype(np.int8)
    else:
        graph = graph.tocoo() if change == "coo" else sp.csr_matrix(graph)
    found = nbutils.detect_communities(graph)
    assert (found.labels.tolist(), found.modularity) == ([0, 0, 0, 1, 1, 1], 0.5)


@pytest.mark.parametrize("table", [None, [1, 2], pd.DataFrame({"a": [1]})])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("between_run_table", "grid"),
        ("choice_effects", "table"),
        ("naive_table", "table"),
        ("shuffle_table", "rows"),
        ("switch_table", "rows"),
        ("turning_table", "runs"),
    ],
)
def test_tables_of_another_shape_are_told_in_one_sentence(name, argument, table):
    others = {"naive_table": ["modularity"]}.get(name, [])
    with pytest.raises((ValueError, TypeError), match=f"{argument} must (be of type DataFrame|have the columns)"):
        getattr(nbutils, name)(table, *others)
