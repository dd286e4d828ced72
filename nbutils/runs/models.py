"""Networks by name, such as "mlp:256-128-64" or "resnet:20-16"."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from nbutils.runs.conditions import NORMALISATIONS, Activation
from nbutils.runs.conditions import activation as activation_named
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, is_number, shown

if TYPE_CHECKING:
    from torch import nn

HIDDEN_LAYERS = "hidden*.relu"  # where a hidden unit's post-non-linearity output is read
INITIALISATIONS = ("pytorch", "glorot", "he", "lecun")
MOST = 5  # networks in a stack; more gain nothing, and their weights leave the cache
MOST_ON_GPU = 32
LARGE = 300_000  # parameters from which a network keeps a core busy by itself
MOST_LAYERS = 100
MOST_NEURONS = 100_000  # in one hidden layer
MOST_PARAMETERS = 500_000_000  # of a network: 2 GB of weights, and four times that to train them


class Kind(NamedTuple):
    """A kind of network: how its name is read.

    Attributes:
        hidden: wildcards of the modules that give hidden neurons, first to last.
        form: how its name goes, for errors.
        numbers: of its name, the least and the most of each; None of a list of widths.
        layout: how what they give is read, see :func:`nbutils.capturing.layouts.read_layers`.
    """

    hidden: str
    form: str
    numbers: tuple[tuple[int, int], ...] | None = None
    layout: str = "auto"


KINDS: Mapping[str, Kind] = {
    "mlp": Kind(HIDDEN_LAYERS, "'mlp:' and the widths of its hidden layers, such as 'mlp:256-128-64'"),
    "vgg": Kind("unit*.relu", "'vgg:' and the channels of its convolutions, such as 'vgg:24-24-48-48'"),
    "resnet": Kind(
        "unit.relu block*.relu?",
        "'resnet:', its depth 6 n + 2 and the channels of its first stage, such as 'resnet:20-16'",
        ((8, 110), (1, 1024)),
    ),
    "vit": Kind(
        "blocks.*.gelu",
        "'vit:', the values of a token, a multiple of 16, and its number of blocks, such as 'vit:64-4'",
        ((16, 1024), (1, 48)),
        "features-last",
    ),
}


def hidden_layers(model: str, activation: str = "relu") -> tuple[str, str]:
    """Wildcards of the modules whose outputs are a model's hidden neurons, and how these outputs are laid out.

    Args:
        model: see :func:`hidden_widths`.
        activation: of an MLP, see :func:`build_model`.

    Examples:
        >>> hidden_layers("mlp:8-4"), hidden_layers("vit:16-2")
        (('hidden*.relu', 'auto'), ('blocks.*.gelu', 'features-last'))
    """
    kind = _read(model)[0]
    return kind.hidden if activation == "relu" else f"hidden*.{activation}", kind.layout


def takes_images(model: str) -> bool:
    """Whether a model needs to know the height and width of its inputs.

    Examples:
        >>> takes_images("mlp:8-4"), takes_images("vit:64-4")
        (False, True)
    """
    return _read(model)[0] is not KINDS["mlp"]


def hidden_widths(model: str) -> tuple[int, ...]:
    """How many hidden neurons each layer of a model has: units, channels, or hidden units of a transformer's blocks.

    Args:
        model: "mlp:<width>-<width>-...", hidden layers; "vgg:<channels>-<channels>-...", 3x3 convolutions;
            "resnet:<depth>-<channels>"; or "vit:<values of a token>-<blocks>".

    Returns:
        One number per hidden layer, first to last.

    Raises:
        ValueError: the name is not of that form, a width is 0 or above 100,000, there are more than 100 layers, or the
            weights between them are more than 500 million.

    Examples:
        >>> hidden_widths("mlp:256-128-64"), hidden_widths("vit:64-2"), hidden_widths("resnet:8-4")
        ((256, 128, 64), (128, 128), (4, 4, 4, 8, 8, 16, 16))
    """
    kind, numbers = _read(model)
    if kind is KINDS["resnet"]:
        depth, width = numbers
        stage = (depth - 2) // 3
        return (width, *(width * 2 ** (layer // stage) for layer in range(depth - 2)))
    if kind is KINDS["vit"]:
        return (2 * numbers[0],) * numbers[1]
    return numbers


def _read(model: str) -> tuple[Kind, tuple[int, ...]]:
    """A name's kind and its numbers."""
    match = re.fullmatch(r"([a-z]+):([0-9]+(?:-[0-9]+)*)", model) if isinstance(model, str) else None
    word = match[1] if match else str(model).partition(":")[0]
    digits = [width.lstrip("0") for width in match[2].split("-")] if match else []
    if word not in KINDS:
        raise ValueError(f"model must be {KINDS['mlp'].form}, or begin with {_others()}, received {shown(model)}")
    kind = KINDS[word]
    if not all(digits) or not digits or (kind.numbers and not _within(kind, digits)):
        raise ValueError(f"model must be {kind.form}, received {shown(model)}")
    if len(digits) > MOST_LAYERS or max(map(len, digits)) > len(str(MOST_NEURONS)):
        raise ValueError(_too_large(model))
    widths = tuple(int(width) for width in digits)
    if kind.numbers is None:
        inputs = 9 if word == "vgg" else 1  # weights of a neuron for every neuron before it
        if max(widths) > MOST_NEURONS or sum((inputs * a + 1) * b for a, b in pairwise(widths)) > MOST_PARAMETERS:
            raise ValueError(_too_large(model))
    return kind, widths


def _others() -> str:
    return ", ".join(f"'{word}:'" for word in KINDS if word != "mlp")


def _within(kind: Kind, digits: Sequence[str]) -> bool:
    if len(digits) != len(kind.numbers) or max(map(len, digits)) > len(str(MOST_NEURONS)):
        return False
    numbers = [int(one) for one in digits]
    fits = all(least <= one <= most for one, (least, most) in zip(numbers, kind.numbers, strict=True))
    return fits and (numbers[0] % 6 == 2 if kind is KINDS["resnet"] else numbers[0] % 16 == 0)


def _too_large(model: str) -> str:
    return (
        f"model must have at most {MOST_LAYERS} hidden layers of at most {MOST_NEURONS:,} neurons and at most "
        f"{MOST_PARAMETERS:,} weights, received {shown(model)}"
    )


def parameter_count(model: str, inputs: int | tuple[int, ...], classes: int) -> int:
    """Number of parameters of a model.

    Args:
        model: see :func:`hidden_widths`.
        inputs: number of input values per example, or the shape of an image, see :func:`build_model`.
        classes: number of outputs.

    Raises:
        ValueError: a bad model name, a model of images without their shape, or more than 500 million.

    Examples:
        >>> parameter_count("mlp:4", inputs=3, classes=2), parameter_count("resnet:20-16", (32, 32, 3), classes=10)
        (26, 269722)
    """
    if takes_images(model):
        import torch

        with torch.device("meta"):  # where nothing is drawn and nothing takes room
            return sum(one.numel() for one in _of_images(model, _shape(model, inputs), classes, 0.0).parameters())
    widths = [inputs if isinstance(inputs, int) else prod(inputs), *hidden_widths(model), classes]
    found = sum((a + 1) * b for a, b in pairwise(widths))
    if found > MOST_PARAMETERS:
        raise ValueError(f"{_too_large(model)}, which has {found:,} on {widths[0]:,} inputs")
    return found


def stack_size(parameters: int, device: str = "cpu") -> int:
    """How many networks of so many parameters are best trained side by side.

    On the processor 5 small ones, but a large one alone, for it keeps a core busy. On a GPU, many of either.

    Examples:
        >>> stack_size(109_386), stack_size(669_706), stack_size(669_706, "cuda")
        (5, 1, 32)
    """
    if device != "cpu":
        return MOST_ON_GPU
    return 1 if parameters > LARGE else MOST


@checked
def build_model(
    model: str,
    inputs: int | tuple[int, ...],
    classes: int,
    dropout: float = 0.0,
    initialisation: str = "pytorch",
    activation: str = "relu",
    normalisation: str = "none",
    sparsity: float = 0.0,
) -> nn.Module:
    """A network by its name, not trained yet.

    Args:
        model: see :func:`nbutils.runs.models.hidden_widths`.
        inputs: number of input values per example; or the shape of an image, (height, width) or (height, width,
            channels), which all but an "mlp:" need. Inputs are rows of pixels either way.
        classes: number of outputs.
        dropout: share dropped in training, in [0, 1): of every hidden layer's outputs of an MLP, of the last layer's
            channels of convolutions, of what a transformer's blocks add.
        initialisation: "pytorch", what each layer draws by itself, in linear layers and convolutions uniform within
            1 / sqrt(inputs of the layer); or, with biases of 0, weights uniform within sqrt(6 / (inputs + outputs)),
            "glorot", as Keras has them, within sqrt(6 / inputs), "he", or within sqrt(3 / inputs), "lecun".
        activation: of an MLP's hidden layers, key of `nbutils.runs.conditions.ACTIVATIONS`; others have their own.
        normalisation: batch normalisation of an MLP's hidden layers, "before" or "after" the activation function, or
            "none"; others have their own.
        sparsity: share of an MLP's hidden outputs that stay active, in (0, 1), by a threshold for each unit that
            follows batch normalisation, see :class:`nbutils.runs.sparsity.SpatialSparsity`; 0 leaves the activation
            function as it is.

    Returns:
        For an MLP, blocks `hidden1`, `hidden2`, ..., each of `linear`, the activation function by its name, such as
        `relu`, and (when asked for) `norm` and `dropout`, then `output`; with sparsity, `sparse` stands in place of the
        activation function. For the others see :mod:`nbutils.runs.architectures`.

    Raises:
        ValueError: a bad model name, more than 500 million weights, `dropout` outside [0, 1), an unknown
            initialisation, activation function or normalisation, or one that the model does not take; `sparsity`
            outside [0, 1), or with another activation function or normalisation; a model of images without their shape,
            or with one that it cannot take.

    Examples:
        >>> build_model("mlp:4", inputs=3, classes=2)[0].relu
        ReLU()

    References:
        Glorot and Bengio (2010), "Understanding the difficulty of training deep feedforward neural networks"; He et al.
        (2015), arXiv:1502.01852; LeCun et al. (1998), "Efficient BackProp"; batch normalisation: Ioffe and Szegedy
        (2015), arXiv:1502.03167.
    """
    shape = inputs if isinstance(inputs, tuple) else None
    values = as_count(inputs if shape is None else prod(shape), "inputs")
    classes = as_count(classes, "classes")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, received {shown(dropout)}")
    if initialisation not in INITIALISATIONS:
        raise ValueError(
            f"initialisation must be one of {', '.join(INITIALISATIONS)}, received {shown(initialisation)}"
        )
    if normalisation not in NORMALISATIONS:
        raise ValueError(f"normalisation must be one of {', '.join(NORMALISATIONS)}, received {shown(normalisation)}")
    function = activation_named(activation)
    if takes_images(model) and (activation, normalisation) != ("relu", "none"):
        raise ValueError(
            "activation and normalisation must be 'relu' and 'none' for a model other than an 'mlp:', which has its "
            f"own, received {shown(activation)} and {shown(normalisation)} for {shown(model)}"
        )
    if wrong := sparsity_misfit(sparsity, model, activation, normalisation):
        raise ValueError(wrong)
    parameter_count(model, inputs if shape else values, classes)  # refuses what no memory holds
    from torch import nn  # the other functions are about names only

    if takes_images(model):
        network = _of_images(model, _shape(model, inputs), classes, dropout)
    else:
        own = {"activation": activation, "function": function, "normalisation": normalisation}
        made = partial(_block, **own, dropout=dropout, sparsity=sparsity)
        network = _fully_connected(hidden_widths(model), values, classes, made)
    if initialisation != "pytorch":
        draw = {
            "glorot": nn.init.xavier_uniform_,
            "he": partial(nn.init.kaiming_uniform_, nonlinearity="relu"),
            "lecun": partial(nn.init.kaiming_uniform_, nonlinearity="linear"),
        }[initialisation]
        for layer in (part for part in network.modules() if isinstance(part, nn.Linear | nn.Conv2d)):
            draw(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network


def sparsity_misfit(sparsity: float, model: str, activation: str, normalisation: str) -> str:
    """Why a network cannot have a sparsity, in one sentence; empty if it can.

    Args:
        sparsity: with the others see :func:`build_model`.

    Examples:
        >>> sparsity_misfit(0.1, "mlp:8", "relu", "none"), sparsity_misfit(1.0, "mlp:8", "relu", "none")
        ('', 'sparsity must be at least 0 and below 1, received 1.0')
    """
    if not is_number(sparsity) or not 0 <= sparsity < 1:
        return f"sparsity must be at least 0 and below 1, received {shown(sparsity)}"
    if not sparsity:
        return ""
    if takes_images(model):
        return f"sparsity must be 0 for model {model!r}, for only an 'mlp:' has sparse units; received {sparsity:g}"
    if (activation, normalisation) != ("relu", "none"):
        return (
            "sparsity must be 0 unless activation and normalisation are 'relu' and 'none', for sparse units are ReLUs "
            f"that follow their own batch normalisation; received {sparsity:g} with {activation!r} and "
            f"{normalisation!r}"
        )
    return ""


def _block(
    inputs: int,
    width: int,
    activation: str,
    function: Activation,
    normalisation: str,
    dropout: float,
    sparsity: float,
) -> nn.Sequential:
    """A hidden layer."""
    from torch import nn

    parts: OrderedDict[str, nn.Module] = OrderedDict(linear=nn.Linear(inputs, width))
    if normalisation == "before":
        parts["norm"] = nn.BatchNorm1d(width)
    if sparsity:
        from nbutils.runs.sparsity import SpatialSparsity

        parts["sparse"] = SpatialSparsity(width, sparsity)
    else:
        parts[activation] = function.make()
    if normalisation == "after":
        parts["norm"] = nn.BatchNorm1d(width)
    if dropout:
        parts["dropout"] = nn.Dropout(dropout)
    return nn.Sequential(parts)


def _fully_connected(
    widths: Sequence[int], inputs: int, classes: int, block: Callable[[int, int], nn.Module]
) -> nn.Sequential:
    from torch import nn

    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    width = inputs
    for depth, hidden in enumerate(widths, start=1):
        blocks[f"hidden{depth}"] = block(width, hidden)
        width = hidden
    blocks["output"] = nn.Linear(width, classes)
    return nn.Sequential(blocks)


def _of_images(model: str, shape: tuple[int, ...], classes: int, dropout: float) -> nn.Module:
    from nbutils.runs.architectures import plain_convolutions, residual_convolutions, vision_transformer

    kind, numbers = _read(model)
    if kind is KINDS["vgg"]:
        return plain_convolutions(shape, numbers, classes, dropout)
    make = residual_convolutions if kind is KINDS["resnet"] else vision_transformer
    return make(shape, *numbers, classes, dropout)


def _shape(model: str, inputs: int | tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the images, if the model can take such."""
    if not isinstance(inputs, tuple) or len(inputs) not in (2, 3):
        raise ValueError(
            f"inputs must be the shape of an image, (height, width) or (height, width, channels), for {shown(model)}, "
            f"received {shown(inputs)}"
        )
    height, width = inputs[:2]
    kind, numbers = _read(model)
    if kind is KINDS["vit"] and (height % 4 or width % 4):
        raise ValueError(f"inputs must have sides divisible by 4 for {shown(model)}, received {height}x{width}")
    halvings = sum(a < b for a, b in pairwise(numbers)) if kind is KINDS["vgg"] else 0
    if min(height, width) < 2**halvings:
        raise ValueError(
            f"inputs must have at least {2**halvings} pixels on a side for {shown(model)}, received {height}x{width}"
        )
    return inputs
