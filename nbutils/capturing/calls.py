"""Activation functions that a model calls without a module, as `torch.relu(x)` in a `forward`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

NAMES = (
    *("celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish"),
    *("prelu", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh"),
    *("tanhshrink", "threshold"),
)
# Every way to call one -> its name.
ACTIVATIONS: dict[Any, str] = {
    getattr(home, word): name
    for name in NAMES
    for home in (torch, nn.functional, torch.Tensor)
    for word in (name, f"{name}_")
    if hasattr(home, word)
}
Take = Callable[[str, tuple[Any, ...], torch.Tensor], None]


class _Calls(TorchFunctionMode):
    """Tells of every call of an activation function."""

    def __init__(self, take: Take, functions: Mapping[Any, str]) -> None:
        super().__init__()
        self._take, self._functions = take, functions

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if (name := self._functions.get(func)) is not None and isinstance(output, torch.Tensor):
            self._take(name, args, output)
        return output


@contextmanager
def activation_calls(
    model: nn.Module, leaves: Collection[str], take: Take, functions: Mapping[Any, str] = ACTIVATIONS
) -> Iterator[None]:
    """Tell of every activation function that a model calls in its own code, while the block runs.

    Args:
        model: any PyTorch module.
        leaves: names of modules whose inside is of no interest: what `nn.ReLU` calls is its own output.
        take: is given the name of a call, its arguments and its output. The name is that of the module in whose
            `forward` it stands, with the function: `layer1.0.relu()`, or `relu()` in the model's own.
        functions: those of interest, with their names.

    Examples:
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.linear = nn.Linear(2, 3)
        ...
        ...     def forward(self, x):
        ...         return self.linear(x).relu()
        >>> net = Net()
        >>> with activation_calls(net, ["linear"], lambda name, _args, output: print(name, tuple(output.shape))):
        ...     _ = net(torch.zeros(5, 2))
        relu() (5, 3)
    """
    inside: list[str] = []
    skipped = set(leaves) - {""}

    def told(function: str, args: tuple[Any, ...], output: torch.Tensor) -> None:
        if inside and inside[-1] not in skipped:
            take(f"{inside[-1]}.{function}()".lstrip("."), args, output)

    def enter(name: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if not name:  # what a pass that failed left behind
                inside.clear()
            inside.append(name)

        return hook

    def leave(*_: Any) -> None:
        inside.pop()

    handles = []
    try:
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(enter(name)))
            handles.append(module.register_forward_hook(leave, prepend=True, always_call=True))
        with _Calls(told, functions):
            yield
    finally:
        for handle in handles:
            handle.remove()
