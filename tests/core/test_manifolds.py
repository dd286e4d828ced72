"""Manifold geometry: cones that one can measure by hand, balls by quadrature, and separability by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog, minimize

from nbutils.representations import Manifolds, manifold_geometry

MANY = 2000  # directions, where a value is compared with the theory's


def mirrored(points: np.ndarray, **options: int) -> Manifolds:
    """Geometry of a class and its mirror image, whose common mean is the origin."""
    both = np.concatenate([points, -points])
    return manifold_geometry(both, np.repeat([0, 1], len(points)), **{"directions": MANY, **options})


def ring(radius: float) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.ones(150)])


def ball(radius: float, dimension: int) -> tuple[float, float]:
    """Mean-field radius and capacity of a ball by quadrature over its three regimes (Chung et al. 2018, section V)."""
    out, along = np.meshgrid(np.linspace(0, 9, 1500)[1:], np.linspace(-8, 8, 2000))
    weight = stats.chi(dimension).pdf(out) * stats.norm.pdf(along)
    touched = (radius * out + along) ** 2 / (1 + radius**2)
    reached = np.where(along >= out / radius, out**2 + along**2, np.where(along > -radius * out, touched, 0))
    anchor = np.where(along > out / radius, out / np.where(along > 0, along, 1), radius)
    return np.sqrt(np.average(anchor**2, weights=weight)), 1 / np.average(reached, weights=weight)


def test_a_point_has_capacity_two_and_no_extent(rng):
    labels = np.repeat(np.arange(5), 4)
    found = manifold_geometry(rng.standard_normal((5, 9))[labels], labels)
    assert (found.radius, found.dimension, found.capacity) == (0, 0, 2)
    single = manifold_geometry(rng.standard_normal((5, 9)), np.arange(5), directions=2)
    assert (single.radius, single.dimension, single.capacity) == (0, 0, 2)


@pytest.mark.parametrize("spread", [0.2, 1.0, 4.0])
def test_two_points_are_a_wedge(spread):
    """A wedge of angle w keeps w / 2 pi of all directions whole and half of them along an edge: 1/2 + w / pi."""
    angle = 2 * np.arctan(spread)
    found = mirrored(np.array([[spread, 1.0], [-spread, 1.0]]))
    assert found.capacity == pytest.approx(1 / (0.5 + angle / np.pi), rel=0.03)
    inside = (2 * spread - angle) / (2 * np.pi)  # the integral of tan^2 over the wedge
    assert found.radius == pytest.approx(np.sqrt((1 - angle / (2 * np.pi)) * spread**2 + inside), rel=0.03)
    assert found.dimension == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("points", [2, 5, 16])
def test_orthogonal_points_are_an_orthant(points):
    """In every direction an axis is reached one way and not the other: statistical dimension m / 2."""
    assert mirrored(np.eye(points), directions=10).capacity == pytest.approx(2 / points)


@pytest.mark.parametrize("radius", [0.3, 1.0, 3.0])
def test_a_disc_is_as_the_theory_says(radius):
    expected, capacity = ball(radius, 2)
    found = mirrored(ring(radius))
    assert found.radius == pytest.approx(expected, rel=0.03)
    assert found.dimension == pytest.approx(2, rel=0.05)
    assert found.capacity == pytest.approx(capacity, rel=0.05)


def test_a_sphere_of_many_points_comes_close_to_a_ball_of_three_dimensions():
    number = np.arange(400) + 0.5  # a spiral of evenly spread points
    height, turn = 1 - 2 * number / 400, number * np.pi * (1 + np.sqrt(5))
    flat = np.sqrt(1 - height**2)
    points = 0.7 * np.column_stack([flat * np.cos(turn), flat * np.sin(turn), height])
    found = mirrored(np.column_stack([points, np.ones(400)]), directions=1000)
    expected, capacity = ball(0.7, 3)
    assert found.radius == pytest.approx(expected, rel=0.03)
    assert found.dimension == pytest.approx(3, rel=0.05)
    assert found.capacity == pytest.approx(capacity, rel=0.05)


def test_capacity_is_the_mean_squared_length_of_a_projection_by_another_solver(rng):
    """The nearest point of the cone, found by a quadratic programme with bounds instead of active sets."""
    points = rng.standard_normal((4, 3))
    points -= points.mean(axis=0)
    rays = np.column_stack([points, np.ones(4)])
    lengths = []
    for toward in rng.standard_normal((300, 4)):
        best = minimize(
            lambda w, t=toward: np.sum((w @ rays - t) ** 2),
            np.ones(4) / 4,
            jac=lambda w, t=toward: 2 * rays @ (w @ rays - t),
            bounds=[(0, None)] * 4,
        )
        lengths.append(np.sum((best.x @ rays) ** 2))
    error = np.std(lengths) / np.sqrt(300)
    # The centre is an axis of its own: two neurons hold one class's centre and the other's.
    assert 1 / mirrored(rays, directions=3000).capacity == pytest.approx(np.mean(lengths), abs=3 * error)


def clouds(rng: np.random.Generator, number: int, neurons: int, points: int, spread: float) -> np.ndarray:
    centres = rng.standard_normal((number, 1, neurons))
    around = rng.standard_normal((number, points, neurons)) * spread / np.sqrt(neurons)
    around -= around.mean(axis=1, keepdims=True)
    return centres / np.linalg.norm(centres, axis=2, keepdims=True) + around


def is_separable(examples: np.ndarray, sides: np.ndarray) -> bool:
    """Whether a hyperplane through the origin has all examples on their sides: a linear programme."""
    signed = -sides[:, None] * examples
    free = linprog(np.zeros(examples.shape[1]), A_ub=signed, b_ub=-np.ones(len(signed)), bounds=(None, None))
    return free.status == 0


@pytest.mark.slow(6)
@pytest.mark.parametrize(("points", "spread"), [(2, 1.0), (3, 0.6), (5, 1.5)])
def test_capacity_is_where_random_dichotomies_stop_being_separable(rng, points, spread):
    neurons, classes = 30, 150
    many = clouds(rng, classes, neurons, points, spread).reshape(-1, neurons)
    capacity = manifold_geometry(many, np.repeat(np.arange(classes), points), directions=100).capacity

    def separable(times: float) -> float:
        number, found = round(times * capacity * neurons), []
        for _ in range(30):
            sides = rng.choice([-1, 1], number).repeat(points)
            found.append(is_separable(clouds(rng, number, neurons, points, spread).reshape(-1, neurons), sides))
        return float(np.mean(found))

    assert separable(0.65) > 0.9
    assert 0.15 < separable(1.0) < 0.85
    assert separable(1.4) < 0.1


@pytest.fixture
def classes(rng) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of 12 examples and 20 neurons."""
    labels = rng.permutation(np.repeat([2, 5, 9], 12))
    return rng.standard_normal((36, 20)) + 2 * rng.standard_normal((10, 20))[labels], labels


def test_averages_are_over_the_classes(classes):
    found = manifold_geometry(*classes)
    assert found.classes.tolist() == [2, 5, 9]
    assert found.radius == pytest.approx(found.radii.mean())
    assert found.dimension == pytest.approx(found.dimensions.mean())
    assert found.capacity == pytest.approx(3 / (1 / found.capacities).sum())
    assert (found.dimensions < 11).all()


def test_geometry_does_not_depend_on_scale_place_and_axes(classes, rng):
    values, labels = classes
    turned = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    first, other = (manifold_geometry(one, labels, MANY) for one in (values, 1e-3 * values @ turned + 50))
    for name in ("radii", "dimensions", "capacities"):
        assert getattr(other, name) == pytest.approx(getattr(first, name), rel=0.05)
    assert manifold_geometry(values * 1e-200, labels).radius == pytest.approx(manifold_geometry(values, labels).radius)


def test_neurons_that_say_nothing_change_nothing(classes):
    values, labels = classes
    first, wider = (
        manifold_geometry(one, labels, MANY) for one in (values, np.column_stack([values, np.full((36, 500), 0.1)]))
    )
    assert wider.radii == pytest.approx(first.radii, rel=0.05)
    assert wider.capacities == pytest.approx(first.capacities, rel=0.05)
    alone = manifold_geometry(np.column_stack([np.arange(4) > 1, np.full(4, 0.1)]).astype(float), [0, 0, 1, 1])
    assert (alone.dimension, alone.capacity) == (0, 2)


def test_wider_classes_are_harder_to_separate(rng):
    labels = np.repeat(np.arange(6), 30)
    centres, noise = rng.standard_normal((6, 40))[labels], rng.standard_normal((180, 40))
    found = [manifold_geometry(centres + spread * noise, labels) for spread in (0.1, 0.5, 2.0)]
    assert found[0].radius < found[1].radius < found[2].radius
    assert found[0].capacity > found[1].capacity > found[2].capacity


def test_more_examples_make_a_larger_manifold_and_the_seed_decides_which(classes):
    values, labels = classes
    few, all_of_them = (manifold_geometry(values, labels, examples=number) for number in (4, 12))
    assert few.dimension < all_of_them.dimension
    assert few.capacity > all_of_them.capacity
    again = manifold_geometry(values, labels, examples=4)
    assert (again.radii == few.radii).all()
    assert (manifold_geometry(values, labels, examples=4, seed=1).radii != few.radii).all()


def test_a_class_in_the_middle_of_the_others_has_no_direction():
    found = manifold_geometry([[-1.0], [1.0], [-0.1], [0.1]], [0, 1, 2, 2])
    assert np.isnan(found.radii).tolist() == [False, False, True]
    assert np.isnan([found.radius, found.dimension, found.capacity]).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x, y: manifold_geometry(x, np.zeros(36)), "labels must hold at least two classes, received 1"),
        (lambda x, y: manifold_geometry(x[:, :0], y), "activations must have at least one neuron"),
        (lambda x, y: manifold_geometry(x, y, directions=1), "directions must be a whole number from 2 to 100000"),
        (lambda x, y: manifold_geometry(x, y, examples=13), "examples must be a whole number from 1 to 12, received"),
        (lambda x, y: manifold_geometry(x, y, seed=-1), "seed must be a numpy.random.Generator or a seed"),
    ],
)
def test_what_cannot_be_answered_is_refused(classes, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(*classes)


@pytest.mark.parametrize(("spread", "least", "most"), [(1.0, 0.01, 0.04), (1e-6, 0.08, 0.15)])
def test_the_error_of_sampling_is_as_told(spread, least, most):
    rng = np.random.default_rng(0)
    clouds = rng.normal(size=(10, 1, 30)) + spread * rng.normal(size=(10, 20, 30))
    labels = np.repeat(np.arange(10), 20)
    drawn = [manifold_geometry(clouds.reshape(-1, 30), labels, seed=seed).capacities for seed in range(8)]
    assert least < (np.std(drawn, axis=0) / np.mean(drawn, axis=0)).mean() < most
