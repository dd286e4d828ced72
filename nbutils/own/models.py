"""Models as users name them, their weights from files that execute nothing, and twins that were never trained."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import importlib.util
import inspect
import pickle
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from nbutils.capturing.batches import Feeder, as_batch
from nbutils.capturing.hooks import evaluating
from nbutils.data.pictures import torchvision_datasets
from nbutils.support.checks import shown
from nbutils.support.messages import cut, nearest
from nbutils.support.needs import needed_for

WRAPPERS = ("module.", "_orig_mod.", "model.", "net.", "network.", "backbone.")
INSIDE = ("state_dict", "model_state_dict", "model", "net", "network")  # where checkpoints keep the weights
TOLD = 5  # names in a message
BATCH = 256  # examples on which batch normalisation is set at a time


def load_factory(name: str) -> Callable[[], nn.Module]:
    """What makes models of a kind.

    Args:
        name: `package.module:factory`; `torchvision:resnet18`, any model of `torchvision.models`, with fresh weights;
            or `path/to/file.py:factory`. A factory is a function without arguments, or a class. Its code is run, and
            as of a script, what lies beside a file can be imported by it.

    Returns:
        A function that makes a model. It raises `ValueError` where the factory fails, or gives no PyTorch module.

    Raises:
        ValueError: no such module, or no such factory in it (names the nearest).

    Examples:
        >>> type(load_factory("torch.nn:Identity")()).__name__
        'Identity'
    """
    where, _, factory = name.rpartition(":")
    if not where or not factory:
        raise ValueError(
            f"model must be package.module:factory, file.py:factory or torchvision:name, received {shown(name)}"
        )
    beside = Path(where).expanduser().absolute().parent if where.endswith(".py") else None
    with _importable(beside):
        module = _module(where, name)
    if not hasattr(module, factory):
        raise ValueError(f"model: {where} has no factory {factory!r}{nearest(factory, dir(module))}")
    make = getattr(module, factory)
    if isinstance(make, nn.Module) or not callable(make):
        kind = type(make).__name__
        raise ValueError(f"model: {factory} of {where} is {kind}, not a function or class that makes a model")

    def made() -> nn.Module:
        try:
            with _importable(beside):
                model = make()
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            told = f"model: {factory}() of {where} failed, it is called without arguments: {reason}"
            raise ValueError(told) from error
        return as_module(model)

    return made


def _module(where: str, name: str) -> Any:
    if where == "torchvision":
        with needed_for("this model"):
            torchvision_datasets()
            return importlib.import_module("torchvision.models")
    with contextlib.suppress(ImportError, RuntimeError):
        torchvision_datasets()  # a torchvision for other hardware than PyTorch's can be imported only in this way
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        path = Path(where).expanduser()
        if not path.is_file():
            raise ValueError(f"model: there is no file {shown(where, 300)}")
        return _of_file(path.absolute())
    except ValueError:
        raise
    except (Exception, SystemExit) as error:  # such as a script that ends with sys.exit(main())
        raise ValueError(f"model: {shown(name, 300)} cannot be imported: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _importable(folder: Path | None) -> Iterator[None]:
    """What lies in a folder can be imported meanwhile, as it can by a script that lies there."""
    if folder is None:
        yield
        return
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _of_file(path: Path) -> Any:
    """A module by its file, known under a name of its own, for dataclasses look for the module of a class."""
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def as_module(model: Any) -> nn.Module:
    """A module by itself, out of what only wraps it: `DataParallel`, `DistributedDataParallel`, `torch.compile`.

    Raises:
        ValueError: it is no PyTorch module.

    Examples:
        >>> type(as_module(nn.DataParallel(nn.Identity()))).__name__
        'Identity'
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be a PyTorch module, received {type(model).__name__}")
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod
        else:
            return model


def load_weights(model: nn.Module, path: Path | str) -> nn.Module:
    """Put weights from a file into a model, all of them or none.

    Args:
        model: as it was when the weights were saved.
        path: `.safetensors`, or a checkpoint of `torch.save`, of which only tensors and plain values are read
            (`weights_only=True`). Prefixes such as `module.` are taken off names where that makes them fit.

    Returns:
        The model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, needs code to be read, holds no weights, or others than the model's; lists the
            first names that are missing, too many, or of another shape.
    """
    found, own = _state(Path(path)), model.state_dict()
    prefixes = ("", *WRAPPERS)
    stripped = (_without(_without(found, outer), inner) for outer in prefixes for inner in prefixes)
    fitting = max(stripped, key=lambda one: len(one.keys() & own.keys()))
    # How many batches a norm has seen matters in training alone, and some files of weights leave it out.
    own, fitting = (
        {name: t for name, t in one.items() if isinstance(t, torch.Tensor) and not name.endswith("num_batches_tracked")}
        for one in (own, fitting)
    )
    shared = {_place(own[name]) for name in fitting if name in own}  # of tied weights, files may hold one name alone
    missing = [name for name, one in own.items() if name not in fitting and _place(one) not in shared]
    more = [name for name in fitting if name not in own]
    shapes = [
        f"{name} {_told(fitting[name])} for {_told(own[name])}"
        for name in own
        if name in fitting and _told(fitting[name]) != _told(own[name])
    ]
    if missing or more or shapes:
        parts = (
            ("the model lacks", more),
            ("the file lacks", missing),
            ("of another shape or kind of number", shapes),
        )
        told = "; ".join(f"{word} {len(names)}: {', '.join(names[:TOLD])}" for word, names in parts if names)
        raise ValueError(f"weights: {path} does not fit the model; {told}")
    model.load_state_dict(fitting, strict=False)
    return model


def _told(values: torch.Tensor) -> str:
    """Shape and kind of numbers: those of a float of any width are the same, and those of a quantised one are not."""
    kind = "" if values.is_floating_point() else f" {values.dtype}".replace("torch.", "")
    return f"{tuple(values.shape)}{kind}"


def _place(values: torch.Tensor) -> tuple[int, int, int]:
    return values.data_ptr(), values.numel(), values.untyped_storage().nbytes()


def _without(state: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items()}


def _state(path: Path) -> dict[str, torch.Tensor]:
    if not path.is_file():
        raise FileNotFoundError(f"weights: there is no file {path}")
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except Exception as error:  # of many types, by where the damage is
            raise ValueError(f"weights: {path} is damaged: {error}") from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # likewise
        if isinstance(error, pickle.UnpicklingError):  # whose text says how to run the code in it
            code = re.search(r"GLOBAL ([\w.]+)", str(error))
            raise ValueError(
                f"weights: {path} is damaged, or holds more than weights{f' ({shown(code[1])})' if code else ''}, and "
                "code in files is never run; where it was made, save model.state_dict()"
            ) from None
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"weights: {path} is damaged, or no checkpoint: {cut(reason, 200)}") from None
    for name in INSIDE:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
    tensors = (
        {name: one for name, one in found.items() if isinstance(one, torch.Tensor)}
        if isinstance(found, Mapping)
        else {}
    )
    if not tensors:
        raise ValueError(f"weights: {path} holds no weights by name")
    return tensors


def draws_all(factory: Callable[[], nn.Module], model: nn.Module) -> bool:
    """Whether a factory makes models of a model's architecture and draws all their weights at random.

    One that reads weights from somewhere, all or some, does not: two calls then give the same numbers.

    Args:
        factory: makes a model anew.
        model: what it is asked about.

    Examples:
        >>> draws_all(lambda: nn.Linear(2, 3), nn.Linear(2, 3)), draws_all(lambda: nn.Linear(2, 2), nn.Linear(2, 3))
        (True, False)
    """
    drawn = [_made(factory, seed).state_dict() for seed in (0, 1)]
    shapes = {name: one.shape for name, one in model.state_dict().items()}
    if any({name: one.shape for name, one in state.items()} != shapes for state in drawn):
        return False
    names = [name for name, one in model.named_parameters() if one.is_floating_point() and one.numel() > 1]
    pairs = [(drawn[0][name].float(), drawn[1][name].float()) for name in names]
    return all(bool((first != second).any()) or bool((first == first.flatten()[0]).all()) for first, second in pairs)


def _made(factory: Callable[[], nn.Module], seed: int) -> nn.Module:
    with _seeded(seed):
        return as_module(factory())


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """All generators that a model may draw its weights from begin here, and go on afterwards as if nothing had been."""
    before = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])


def untrained_twin(
    model: nn.Module, inputs: Any, seed: int, factory: Callable[[], nn.Module] | None = None
) -> nn.Module:
    """The same architecture with weights drawn anew.

    Where a factory makes models of the kind, it makes the twin, as the model itself began. Without one, every module
    that can draw its weights does so by its own `reset_parameters`, and parameters that no module can draw are drawn
    from a normal distribution with the mean and deviation that they have. Batch normalisation then learns the
    mean and deviation of what it is given, as it would in the first step of training; where the model's own has never
    seen anything, and has mean 0 and variance 1, so has that of the twin.

    Args:
        model: any PyTorch module; stays as it is.
        inputs: examples as the model takes them, on which batch normalisation is set.
        seed: of the draw.
        factory: makes models with weights at random, see :func:`draws_all`.

    Returns:
        The twin, in evaluation mode.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
        >>> twin = untrained_twin(model, torch.zeros(5, 4), seed=0)
        >>> bool((twin[0].weight == model[0].weight).all()), twin[0].weight.shape == model[0].weight.shape
        (False, True)
    """
    learned = [name for name, one in model.named_modules() if isinstance(one, NORM) and _has_learned(one)]
    if factory is None:
        twin = copy.deepcopy(model)
        _draw_by_modules(twin, seed)
    else:
        like = next(model.parameters(), torch.zeros(1))
        twin = _made(factory, seed).to(like.device, like.dtype)
    if norms := [twin.get_submodule(name) for name in learned]:
        with torch.no_grad(), evaluating(twin):
            for norm in norms:
                norm.train()
                norm.momentum, norm.num_batches_tracked = None, torch.zeros_like(norm.num_batches_tracked)
            feed, whole = Feeder(twin), as_batch(inputs)
            stops = [*range(BATCH, len(whole) - 1, BATCH), len(whole)]  # one example alone has no variance
            for start, stop in pairwise([0, *stops]):
                feed(whole.rows(slice(start, stop)))
    return twin.eval()


def _draw_by_modules(twin: nn.Module, seed: int) -> None:
    with _seeded(seed), torch.no_grad():
        drawn: set[int] = set()
        for module in twin.modules():
            for name, parts in module.parametrizations.items() if is_parametrized(module) else ():
                with contextlib.suppress(NotImplementedError, RuntimeError):  # not every one can be told its result
                    setattr(module, name, _like(getattr(module, name)))
                    drawn |= {id(one) for one in parts.parameters(recurse=False)}
            reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if _takes_nothing(reset) and any(True for _ in module.parameters(recurse=False)):
                own = list(module.parameters(recurse=False))
                before = [one.clone() for one in own]
                reset()  # of a pruned or reparametrised module it draws a weight that is none of its parameters
                drawn |= {id(now) for now, old in zip(own, before, strict=True) if _is_drawn(now, old)}
        for one in twin.parameters():
            if id(one) not in drawn and one.is_floating_point() and one.numel():
                one.copy_(_like(one))


def _like(values: torch.Tensor) -> torch.Tensor:
    """Normal noise with the mean and the deviation of some values."""
    mean, deviation = values.float().mean(), values.float().std(correction=0)
    return (mean + deviation * torch.randn(values.shape, device=values.device)).to(values.dtype)


def _takes_nothing(function: Any) -> bool:
    """Whether something can be called without arguments."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True


def _is_drawn(now: torch.Tensor, before: torch.Tensor) -> bool:
    """Whether a parameter was set anew: it has changed, or is one number throughout, as a bias of 0 is."""
    return not torch.equal(now, before) or not now.numel() or bool((now == now.flatten()[0]).all())


NORM = nn.modules.batchnorm._BatchNorm


def _has_learned(norm: Any) -> bool:
    """Whether a batch normalisation has a mean and a variance of something that it has seen."""
    there = norm.running_mean is not None
    return there and bool(norm.running_mean.any() or (norm.running_var != 1).any())
