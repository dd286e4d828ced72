"""What the activations say about the classes: collapse onto means, clusters inside classes, probes, manifolds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbutils.support.arguments import checked
from nbutils.support.checks import as_activations, as_count, as_labels, as_rng, ordinary

ROUNDING = 1e-12  # of a neuron's largest value: what varies by less does not vary
ACTIVE = 0.25  # of the examples, on which a neuron of `layer_spread` is active
STEPS = 1000  # of a linear probe's solver
DIRECTIONS = 300  # per class manifold
MOST_DIRECTIONS = 100_000
ACTIVE_SET = 30  # steps per example and dimension, in the search for an anchor point


@checked
@dataclass(frozen=True)
class Manifolds:
    """Geometry of class manifolds, averaged over the classes and for each of them.

    Attributes:
        radius: mean of `radii`.
        dimension: mean of `dimensions`.
        capacity: harmonic mean of `capacities`.
        classes: class labels in rising order, shape (classes,).
        radii: mean-field radius per class, shape (classes,).
        dimensions: mean-field dimension per class, shape (classes,).
        capacities: capacity per class, shape (classes,).
    """

    radius: float
    dimension: float
    capacity: float
    classes: np.ndarray
    radii: np.ndarray
    dimensions: np.ndarray
    capacities: np.ndarray


def neural_collapse(activations: Any, labels: Any) -> float:
    """How much activations vary within classes, relative to the spread of the class means: NC1.

    NC1 = tr(S_W S_B^+) / C, with S_W the covariance of the examples around the mean of their class, S_B that of the C
    class means around their own mean, and S_B^+ its pseudoinverse. All classes weigh the same, however many examples
    they have. It is 0 once every example lies on its class mean.

    Args:
        activations: of one layer, usually the last hidden one, shape (examples, neurons), finite.
        labels: class per example, shape (examples,), integers; at least two classes.

    Returns:
        Dimensionless, >= 0; it does not change when activations are scaled, shifted or rotated. NaN where all class
        means are equal.

    Raises:
        ValueError: shapes disagree, values are not finite, or there are fewer than two classes.

    Examples:
        >>> neural_collapse([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1])
        0.125

    References:
        Papyan, Han and Donoho (2020), doi:10.1073/pnas.2015509117.
    """
    values = _as_floats(activations, None)
    index, count = _as_classes(labels, len(values))
    means = np.stack([values[index == one].mean(axis=0) for one in range(count)])
    spread = means - means.mean(axis=0)
    _, size, axes = np.linalg.svd(spread / np.sqrt(count), full_matrices=False)
    # Means that are equal but for rounding span no direction.
    kept = size > max(spread.shape) * np.finfo(np.float64).eps * np.linalg.norm(means)
    if not kept.any():
        return float("nan")
    inside = ((values - means[index]) @ axes[kept].T / size[kept]) ** 2
    return float(np.mean([inside[index == one].sum(axis=1).mean() for one in range(count)]) / count)


def linear_probe(activations: Any, labels: Any, folds: int = 5, seed: int = 0) -> float:
    """How well a linear classifier reads the class from activations: cross-validated accuracy.

    Logistic regression with scikit-learn's defaults (L2 penalty, C = 1) on activations standardised over the training
    folds; accuracy on the fold left out, averaged over stratified folds. A classifier that has not settled after 1,000
    steps is used as it is.

    Args:
        activations: shape (examples, neurons), finite; at least one neuron.
        labels: class per example, shape (examples,), integers; at least two classes with `folds` examples each.
        folds: of the cross-validation, from 2 to the number of examples of the smallest class.
        seed: of the folds.

    Returns:
        Share of examples classified as labelled, in [0, 1].

    Raises:
        ValueError: shapes disagree, values are not finite, there is no neuron, fewer than two classes, or a class with
            fewer examples than `folds`.

    Examples:
        >>> linear_probe([[0.0], [0.1], [0.9], [1.0]], [0, 0, 1, 1], folds=2)
        1.0

    References:
        Alain and Bengio (2016), arXiv:1610.01644; computed by scikit-learn.
    """
    values = _as_floats(activations, 0)
    folds, source = as_count(folds, "folds", least=2), as_rng(seed, "seed")
    index, _ = _as_classes(labels, len(values))
    least = int(np.bincount(index).min())
    if least < folds:
        raise ValueError(f"folds must be at most the examples of the smallest class, {least}, received {folds}")
    if not values.shape[1]:
        raise ValueError(f"activations must have at least one neuron, received shape {values.shape}")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=STEPS))
    parts = StratifiedKFold(folds, shuffle=True, random_state=int(source.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(cross_val_score(probe, values, index, cv=parts).mean())


def manifold_geometry(
    activations: Any,
    labels: Any,
    directions: int = DIRECTIONS,
    examples: int | None = None,
    seed: int = 0,
) -> Manifolds:
    """Radius, dimension and capacity of the clouds of points that the classes form in one layer.

    The class manifold is the convex hull of a class's examples, relative to the mean of all class centres. In units of
    the length of its centre, an example is (s, 1): its deviation s from the centre, and the centre as an axis of its
    own. The theory asks where a random weight vector touches such a manifold: for a standard normal vector t of d
    dimensions, let P(t) be the nearest point of the cone that all (s, 1) span, and (a(t), 1) the point of the hull in
    that direction, the anchor point (where P(t) is 0, the example that reaches farthest along t). With T the part of t
    in the space of deviations, and means over t,

        radius^2 = mean norm(a)^2,  dimension = mean (T . a / norm(a))^2,  1 / capacity = mean norm(P(t))^2.

    Capacity is how many such manifolds per neuron can just be separated by a hyperplane when each of them gets one of
    two labels at random. It is computed with one non-negative least squares problem per direction (SciPy); directions
    are drawn on the sphere, in opposite pairs, and the length of t is averaged exactly. Correlations between class
    centres, other than their common mean, are left in: the theory takes centres as independent, and with ten classes
    what is projected out to make them so would be most of what the centres are.

    Args:
        activations: of one layer, shape (examples, neurons), finite; at least one neuron.
        labels: class per example, shape (examples,), integers; at least two classes.
        directions: drawn per class, from 2 to 100,000; an odd number becomes the next even one.
        examples: drawn from every class without replacement, at most as many as the smallest has; None takes all.
            Radius and dimension grow and capacity falls with the number of examples: compare what has equally many.
        seed: of the examples and directions drawn.

    Returns:
        :class:`Manifolds`. Radius: in units of the length of the class centre, >= 0. Dimension: at most the number of
        neurons and of a class's examples less one; 0 for a single point. Capacity: manifolds per neuron, at most 2,
        which a single point has exactly. All NaN for a class whose centre is the mean of all centres, and in the
        averages then. These are means over directions drawn, which may lie beyond the bounds. With 300 directions the
        error of sampling is 1 to 3 % for a class and below 1 % for the average of ten, but that of capacity grows as
        manifolds shrink, to 11 % for a class and 3 % for the average where they are nearly points.

        Ten classes of 200 examples and 256 neurons take about half a second of one core, and 1,024 neurons a second:
        deviations are turned into the space that they span, which changes nothing.

    Raises:
        ValueError: shapes disagree, values are not finite, there is no neuron, fewer than two classes, or an option is
            out of range.

    Examples:
        >>> points = manifold_geometry([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], [0, 0, 1, 1])
        >>> points.radius, points.dimension, points.capacity
        (0.0, 0.0, 2.0)

    References:
        Chung, Lee and Sompolinsky (2018), doi:10.1103/PhysRevX.8.031003: equations 16 (capacity), 28 (radius) and 29
        (dimension), without a margin; per layer of a network: Stephenson et al. (2021), arXiv:2105.14602. That
        capacity is one over the statistical dimension of a cone: Amelunxen et al. (2014), doi:10.1093/imaiai/iau005.
    """
    values = _as_floats(activations, None)
    index, count = _as_classes(labels, len(values))
    directions, source = as_count(directions, "directions", 2, MOST_DIRECTIONS), as_rng(seed, "seed")
    if not values.shape[1]:
        raise ValueError(f"activations must have at least one neuron, received shape {values.shape}")
    members = [np.flatnonzero(index == one) for one in range(count)]
    if examples is not None:
        drawn = as_count(examples, "examples", most=min(map(len, members)))
        members = [source.choice(own, drawn, replace=False) for own in members]
    clouds = [values[own] for own in members]
    middle = np.mean([cloud.mean(axis=0) for cloud in clouds], axis=0)
    least = max(values.shape) * np.finfo(np.float64).eps * np.abs(values).max()  # what is only rounding is 0
    found = np.array([_geometry(cloud - middle, least, directions, source) for cloud in clouds]).T
    return Manifolds(
        float(found[0].mean()),
        float(found[1].mean()),
        float(1 / (1 / found[2]).mean()),
        np.unique(as_labels(labels)),
        *found,
    )


def neuron_spread(preactivations: Any, labels: Any, top: int = 30) -> float:
    """Clusters inside classes, neuron by neuron, without subclasses: how much a class makes its neurons vary.

    mean over classes i of the mean of the `top` largest over neurons n of sd(n, i) / sd(n), with sd(n, i) the standard
    deviation of n's pre-activations over class i and sd(n) that over all examples. A neuron that tells examples of one
    class apart varies as much inside the class as over all classes, or more.

    Args:
        preactivations: values before the ReLU of the neurons of all hidden layers, shape (examples, neurons), finite.
        labels: class per example, shape (examples,), integers; at least two classes.
        top: neurons per class; all of them where there are fewer.

    Returns:
        Dimensionless, in [0, sqrt(examples / examples of the smallest class)]. A neuron that is never positive, or does
        not vary, counts 0, as it does in the authors' code.

    Raises:
        ValueError: shapes disagree, values are not finite, there are fewer than two classes, or `top` is below 1.

    Examples:
        >>> neuron_spread([[-1.0], [1.0], [-1.0], [1.0]], [0, 0, 1, 1])
        1.0

    References:
        Carbonnelle and De Vleeschouwer (2021), arXiv:2103.06733: the variance of neurons; as equation 2.4 (c3) of
        Carbonnelle (2022), "Towards understanding deep learning with the natural clustering prior", states it, where
        `top` is 30.
    """
    values, top = _as_floats(preactivations, 0, "preactivations"), as_count(top, "top")
    index, count = _as_classes(labels, len(values))
    of_all = _deviation(values)
    dead = values.max(axis=0) <= 0
    ratios = [_ratio(_deviation(values[index == one]), of_all, values, dead) for one in range(count)]
    return float(np.mean([_mean_of_largest(one, top) for one in ratios]))


def layer_spread(preactivations: Any, labels: Any, layers: Any, top: int = 1) -> float:
    """Clusters inside classes, layer by layer, without subclasses: how much distances within a class vary.

    mean over classes i of the mean of the `top` largest over layers l of SD(l, i) / SD(l), with SD(l, i) the standard
    deviation of the cosine distances between all pairs of examples of class i, and SD(l) that between all pairs.
    Before, every neuron is standardised over the examples, shifted and rectified so that it is active on 25 % of them;
    neurons that are never positive or do not vary are left out, as in the authors' code.

    Args:
        preactivations: values before the ReLU of the neurons of all hidden layers, shape (examples, neurons), finite.
            Memory for a few matrices (examples, examples) is needed.
        labels: class per example, shape (examples,), integers; at least two classes of at least two examples.
        layers: layer per neuron, shape (neurons,), integers.
        top: layers per class; all of them where there are fewer.

    Returns:
        Dimensionless, >= 0; 0.0 where no layer has distances that vary. An example on which no neuron of a layer is
        active is at distance 1 from all others.

    Raises:
        ValueError: shapes disagree, values are not finite, there are fewer than two classes or a class with a single
            example, or `top` is below 1.

    Examples:
        >>> line = [[3.0, 0.0], [0.0, 3.0], [3.0, 0.0], [0.0, 3.0]]
        >>> round(layer_spread(line, [0, 0, 1, 1], [1, 1]), 12)  # two examples have one distance, which does not vary
        0.0

    References:
        Carbonnelle and De Vleeschouwer (2021), arXiv:2103.06733: the variance of layers; as equation 2.5 (c4) of
        Carbonnelle (2022), "Towards understanding deep learning with the natural clustering prior", states it, with
        25 % for every layer; an example and itself are no pair.
    """
    values, top = _as_floats(preactivations, 0, "preactivations"), as_count(top, "top")
    index, count = _as_classes(labels, len(values), least=2)
    layer_of = as_labels(layers, values.shape[1], "layers")
    ratios = []
    for layer in np.unique(layer_of):
        distances = _cosine_distances(_rectified(values[:, layer_of == layer]))
        of_all = _spread_of_pairs(distances)
        parts = [_spread_of_pairs(distances[np.ix_(index == one, index == one)]) for one in range(count)]
        ratios.append(np.array(parts) / of_all if of_all > ROUNDING else np.zeros(count))
    return float(np.mean([_mean_of_largest(one, top) for one in np.array(ratios).T])) if ratios else 0.0


def subclass_selectivity(preactivations: Any, subclasses: Any, labels: Any, top: int = 30) -> float:
    """Clusters inside classes, neuron by neuron, for data with subclasses: how selective neurons are for one of them.

    median over subclasses i of the mean of the `top` largest over neurons n of
    (mean(n, i) - mean(n, rest)) / (sd(n, i) + sd(n, rest)), with mean and standard deviation of n's pre-activations
    over subclass i and over the rest of i's class.

    Args:
        preactivations: values before the ReLU of the neurons of all hidden layers, shape (examples, neurons), finite.
        subclasses: subclass per example, shape (examples,), integers, at least two examples each; the network was not
            trained on them.
        labels: class per example, shape (examples,), integers; at least two subclasses each.
        top: neurons per subclass; all of them where there are fewer.

    Returns:
        Dimensionless; 0 where no neuron tells a subclass from the rest. A neuron that is never positive counts 0, as it
        does in the authors' code, and so does one that varies neither in the subclass nor in the rest.

    Raises:
        ValueError: shapes disagree, values are not finite, a subclass lies in two classes or has one example, a class
            has a single subclass, or `top` is below 1.

    Examples:
        >>> subclass_selectivity([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1], [0, 0, 0, 0])  # 2 and -2
        0.0

    References:
        Carbonnelle and De Vleeschouwer (2021), arXiv:2103.06733: neuron-level subclass selectivity; as equation 2.2
        (c1) of Carbonnelle (2022), "Towards understanding deep learning with the natural clustering prior", states it,
        where `top` is 30.
    """
    values, top = _as_floats(preactivations, 0, "preactivations"), as_count(top, "top")
    own, whole = _as_hierarchy(subclasses, labels, len(values))
    dead = values.max(axis=0) <= 0
    found = []
    for one in np.unique(own):
        inside = own == one
        rest = (whole == whole[inside][0]) & ~inside
        apart = values[inside].mean(axis=0) - values[rest].mean(axis=0)
        noise = _deviation(values[inside]) + _deviation(values[rest])
        found.append(_mean_of_largest(_ratio(apart, noise, values, dead), top))
    return float(np.median(found))


def subclass_silhouette(activations: Any, subclasses: Any, labels: Any, layers: Any, top: int = 1) -> float:
    """Clusters inside classes, layer by layer, for data with subclasses: how well a layer groups each of them.

    median over subclasses i of the mean of the `top` largest over layers l of the mean silhouette of i's examples among
    those of i's class: (b - a) / max(a, b), with a an example's mean cosine distance to its own subclass and b that to
    the nearest other subclass of its class.

    Args:
        activations: post-non-linearity values of the neurons of all hidden layers, shape (examples, neurons), finite.
            Memory for a few matrices (examples of a class, examples of a class) is needed.
        subclasses: subclass per example, shape (examples,), integers, at least two examples each; the network was not
            trained on them.
        labels: class per example, shape (examples,), integers; at least two subclasses each.
        layers: layer per neuron, shape (neurons,), integers.
        top: layers per subclass; all of them where there are fewer.

    Returns:
        In [-1, 1]: 1 for tight subclasses far from each other, about 0 where they overlap; 0.0 without neurons. An
        example on which no neuron of a layer is active is at distance 1 from all others.

    Raises:
        ValueError: shapes disagree, values are not finite, a subclass lies in two classes or has one example, a class
            has a single subclass, or `top` is below 1.

    Examples:
        >>> subclass_silhouette([[1, 0], [2, 0], [0, 1], [0, 3]], [0, 0, 1, 1], [0, 0, 0, 0], [1, 1])
        1.0

    References:
        Carbonnelle and De Vleeschouwer (2021), arXiv:2103.06733: layer-level silhouette score; as equation 2.3 (c2) of
        Carbonnelle (2022), "Towards understanding deep learning with the natural clustering prior", states it.
        Silhouettes: Rousseeuw (1987), doi:10.1016/0377-0427(87)90125-7; computed by scikit-learn.
    """
    from sklearn.metrics import silhouette_samples

    values, top = _as_floats(activations, None), as_count(top, "top")
    own, whole = _as_hierarchy(subclasses, labels, len(values))
    layer_of = as_labels(layers, values.shape[1], "layers")
    found: dict[int, list[float]] = {one: [] for one in np.unique(own).tolist()}
    for layer in np.unique(layer_of):
        for one in np.unique(whole):
            members = whole == one
            distances = _cosine_distances(values[np.ix_(members, layer_of == layer)])
            scores = silhouette_samples(distances, own[members], metric="precomputed")
            for part in np.unique(own[members]).tolist():
                found[part].append(scores[own[members] == part].mean())
    return float(np.median([_mean_of_largest(np.array(scores), top) for scores in found.values()]))


def _as_floats(values: Any, axis: int | None, name: str = "activations") -> np.ndarray:
    """Activations in float64 that can be squared; with axis 0 every neuron may be scaled by a power of two."""
    return ordinary(as_activations(values, name).astype(np.float64), axis)


def _as_classes(labels: Any, examples: int, least: int = 1) -> tuple[np.ndarray, int]:
    """Class per example, numbered from 0, and their number."""
    names, index, size = np.unique(as_labels(labels, examples), return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ValueError(f"labels must hold at least two classes, received {len(names)}")
    if size.min() < least:
        raise ValueError(f"labels must hold at least {least} examples of each class, received {size.min()}")
    return index, len(names)


def _as_hierarchy(subclasses: Any, labels: Any, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Subclass and class per example, every subclass of two or more examples in one class of two or more subclasses."""
    own, whole = as_labels(subclasses, examples, "subclasses"), as_labels(labels, examples)
    pairs = np.unique(np.stack([own, whole]), axis=1)
    names, size = np.unique(own, return_counts=True)
    if pairs.shape[1] > len(names):
        raise ValueError("subclasses must each lie in one class of labels, received one that lies in several")
    if size.min() < 2:
        raise ValueError("subclasses must hold at least two examples each, received one with a single example")
    if np.unique(pairs[1], return_counts=True)[1].min() < 2:
        raise ValueError("subclasses must be at least two in each class of labels, received a class with one")
    return own, whole


def _deviation(values: np.ndarray) -> np.ndarray:
    """Standard deviation of every neuron, exactly 0 where it does not vary."""
    return (values - values[0]).std(axis=0)


def _ratio(above: np.ndarray, below: np.ndarray, values: np.ndarray, dead: np.ndarray) -> np.ndarray:
    """A ratio per neuron; 0 for those that are dead, or vary by no more than rounding."""
    varies = (below > ROUNDING * np.abs(values).max(axis=0)) & ~dead
    return np.divide(above, below, out=np.zeros(len(below)), where=varies)


def _mean_of_largest(values: np.ndarray, top: int) -> float:
    return float(np.sort(values)[::-1][:top].mean()) if values.size else 0.0


def _rectified(values: np.ndarray) -> np.ndarray:
    """Standardised neurons, each active on the same share of the examples, without those that are dead or constant."""
    alive = (values.max(axis=0) > 0) & (_deviation(values) > ROUNDING * np.abs(values).max(axis=0))
    own = values[:, alive]
    if not own.shape[1]:
        return own
    scaled = (own - own.mean(axis=0)) / _deviation(own)
    return np.maximum(scaled - np.quantile(scaled, 1 - ACTIVE, axis=0), 0)


def _cosine_distances(values: np.ndarray) -> np.ndarray:
    """1 - cosine for all pairs of examples; 1 where one of them is all 0."""
    values = ordinary(values, axis=1) if values.shape[1] else values
    length = np.linalg.norm(values, axis=1, keepdims=True)
    unit = values / np.where(length > 0, length, 1)
    distances = np.clip(1 - unit @ unit.T, 0, 2)
    np.fill_diagonal(distances, 0)
    return distances


def _spread_of_pairs(distances: np.ndarray) -> float:
    """Standard deviation over the pairs of different examples; 0 for a single pair."""
    return float(distances[np.triu_indices(len(distances), 1)].std())


def _geometry(cloud: np.ndarray, least: float, directions: int, source: np.random.Generator) -> tuple[float, ...]:
    """Radius, dimension and capacity of one manifold."""
    from scipy.optimize import nnls

    centre = cloud.mean(axis=0)
    length = np.linalg.norm(centre)
    if length <= least * np.sqrt(len(centre)):
        return (np.nan,) * 3
    points = _turned(cloud - centre, least) / length  # (examples, dimensions)
    rays = np.column_stack([points, np.ones(len(points))])
    size = np.linalg.norm(rays, axis=1, keepdims=True)
    rays /= size  # the cone stays, and the solver meets no huge numbers
    half = source.standard_normal((-(-directions // 2), rays.shape[1]))
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    sums = np.zeros(3)
    for toward in np.concatenate([half, -half]):
        shares, _ = nnls(rays.T, toward, maxiter=ACTIVE_SET * (len(rays) + rays.shape[1]))
        weights = shares / size[:, 0]
        anchor = weights @ points / weights.sum() if weights.any() else points[np.argmax(points @ toward[:-1])]
        radius = np.linalg.norm(anchor)
        along = toward[:-1] @ anchor / radius if radius > 0 else 0.0
        sums += radius**2, along**2, np.sum((shares @ rays) ** 2)
    radius, along, reached = sums / (2 * len(half))
    squared = rays.shape[1]  # the mean of |t|^2
    return float(np.sqrt(radius)), float(squared * along), float(1 / (squared * reached))


def _turned(deviations: np.ndarray, least: float) -> np.ndarray:
    """The same points in coordinates of the space that they span."""
    left, size, _ = np.linalg.svd(deviations, full_matrices=False)
    kept = size > least * np.sqrt(deviations.size)
    return left[:, kept] * size[kept]
