from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from nbutils.activations import firing
from nbutils.capturing.hooks import capture, capture_activations
from nbutils.capturing.layouts import NonFiniteError
from nbutils.cofiring import cofiring_counts
from nbutils.measures import measure_communities, measure_entropies
from nbutils.watch import Watch, count_cofiring


@pytest.fixture
def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 10), nn.ReLU(inplace=True), nn.Linear(10, 3))


def step(net: nn.Module, inputs: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    loss = nn.functional.cross_entropy(net(inputs), torch.zeros(len(inputs), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def test_counts_of_every_training_batch(net):
    """Against firing noted by hand at each step, while the weights change, and with batches of any size."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    noted = []
    with capture(net, "1 3") as seen, count_cofiring(net, "1 3") as counter:
        for size in (32, 1, 7, 5000, 32):
            inputs = torch.randn(size, 6)
            step(net, inputs, optimizer)
            noted.append((torch.cat([seen["1"], seen["3"]], dim=1) > 0).numpy())
            net.eval()
            net(inputs)  # scoring is not counted
            net.train()
    net(torch.randn(10, 6))  # nor what comes after the block
    whole = np.concatenate(noted)
    assert counter.examples == len(whole)
    assert (counter.counts() == cofiring_counts(whole)).all()


def test_training_is_not_disturbed_and_hooks_go_even_after_an_exception(net):
    first = {name: values.clone() for name, values in net.state_dict().items()}
    batches = [torch.randn(16, 6) for _ in range(20)]

    def train() -> dict:
        net.load_state_dict(first)
        optimizer = torch.optim.Adam(net.parameters())
        for batch in batches:
            step(net, batch, optimizer)
        return {name: values.clone() for name, values in net.state_dict().items()}

    alone = train()
    with count_cofiring(net, "1 3"):
        watched = train()
    assert all((alone[name] == watched[name]).all() for name in alone)
    with pytest.raises(RuntimeError), count_cofiring(net, "1"):
        net(torch.randn(4, 99))
    assert not any("forward" in vars(module) or module._forward_hooks for module in net.modules())


def test_counters_may_be_nested_and_a_model_s_own_wrapper_stays(net):
    original = net[1].forward
    net[1].forward = lambda x: original(x) * 2
    own = vars(net[1])["forward"]
    with count_cofiring(net, "1") as outer, count_cofiring(net, "1 3") as inner:
        net(torch.randn(9, 6))
    assert (outer.counts() == inner.counts()[:20, :20]).all()
    assert vars(net[1])["forward"] is own
    assert "forward" not in vars(net[3])


class Late(nn.Module):
    """Changes its hidden layer in place only when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.relu, self.harm = nn.Linear(6, 9), nn.ReLU(), False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.hidden(x))
        return x.mul_(0) if self.harm else x


def test_layers_that_later_ones_change_in_place_are_counted_as_they_were():
    net = nn.Sequential(nn.Linear(6, 20), nn.Hardtanh(inplace=True), nn.Dropout(0.5, inplace=True))
    inputs = torch.randn(40, 6)
    with count_cofiring(net, "0") as counter:
        for _ in range(3):
            net(inputs)
    expected = cofiring_counts((inputs @ net[0].weight.T + net[0].bias > 0).detach())
    assert (counter.counts() == 3 * expected).all()
    late = Late()
    with count_cofiring(late, "relu"):
        late(inputs)
        late.harm = True
        with pytest.raises(RuntimeError, match=r"layers \['relu'\] are changed in place in this pass"):
            late(inputs)


class Odd(nn.Module):
    """Runs its layers as it is told to."""

    def __init__(self, plan: str = "ab") -> None:
        super().__init__()
        self.a, self.b, self.plan = nn.Linear(6, 6), nn.Sigmoid(), plan

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in self.plan:
            if step == "!":
                raise ArithmeticError("in the middle of a pass")
            x = getattr(self, step)(x)
        return x


def fired_in(net: Odd, inputs: torch.Tensor, threshold: float) -> np.ndarray:
    hidden = net.a(inputs)
    return (torch.cat([hidden, torch.sigmoid(hidden)], dim=1) > threshold).detach().numpy()


def test_only_whole_passes_are_counted():
    """Neither one that ended early, nor layers that run alone, even twice, nor what comes in evaluation mode."""
    net, inputs = Odd(), torch.randn(50, 6)
    expected = cofiring_counts(fired_in(net, inputs, 0.5))
    with count_cofiring(net, threshold=0.5) as counter:
        net(inputs)
        for plan in ("a!", "ab!"):
            net.plan = plan
            with pytest.raises(ArithmeticError):
                net(torch.randn(7, 6))
            net.b(net.b(net.a(torch.randn(9, 6))))
        assert counter.examples == 50
        net.plan = "ab"
        net.eval()
        net(inputs)
        net.b(inputs)
        net.train()
        net(inputs)
    assert counter.examples == 100
    assert (counter.counts() == 2 * expected).all()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("aba", "layer 'a' ran twice in one forward pass"),
        ("a", "layer 'b' did not run in this forward pass"),
        ("", "layer 'a' did not run in this forward pass"),
    ],
)
def test_layers_that_do_not_run_once_are_named_and_leave_nothing_behind(plan, message):
    net, inputs = Odd(plan), torch.randn(20, 6)
    expected = cofiring_counts(fired_in(net, inputs, 0.5))
    with count_cofiring(net, threshold=0.5) as counter:
        with pytest.raises(RuntimeError, match=message):
            net(inputs)
        net.plan = "ab"
        net(inputs)
    assert counter.examples == 20
    assert (counter.counts() == expected).all()


@pytest.mark.parametrize("layers", ["*relu()", "1#2", ["1", "relu()#2"]])
def test_what_is_no_module_is_refused_with_what_looks_at_it(net, layers):
    message = r"layers must name modules here, .* Watch takes snapshots"
    with pytest.raises(ValueError, match=message), count_cofiring(net, layers):
        pass


class Wrapping(nn.Module):
    """Gives its result in a dictionary."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"x": x}


def test_a_layer_without_a_tensor_is_named():
    for model, name in ((nn.Sequential(Wrapping()), "0"), (Wrapping(), "")):
        with pytest.raises(RuntimeError, match=f"layer '{name}' returned dict, not a tensor"), count_cofiring(model):
            model(torch.randn(5, 6))


def test_a_model_that_is_its_own_layer():
    net, inputs = nn.Linear(6, 5), torch.randn(30, 6)
    expected = cofiring_counts((net(inputs) > 0).detach())
    with count_cofiring(net) as outer, count_cofiring(net) as inner:
        net(inputs)
        net(inputs)
    assert (outer.counts() == 2 * expected).all()
    assert (inner.counts() == 2 * expected).all()
    assert "forward" not in vars(net)


def test_a_model_that_runs_itself_is_counted_once_per_inner_pass():
    class Twins(Odd):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self(x[0]) - self(x[1]) if x.ndim == 3 else super().forward(x)

    net, inputs = Twins(), torch.randn(2, 40, 6)
    expected = sum(cofiring_counts(fired_in(net, one, 0.5)) for one in inputs)
    with count_cofiring(net, threshold=0.5) as counter:
        net(inputs)
    assert (counter.counts() == expected).all()


def test_a_copy_made_meanwhile_is_a_network_of_its_own(net):
    inputs = torch.randn(8, 6)
    with count_cofiring(net, "1") as counter:
        net(inputs)
        twin = copy.deepcopy(net)
        with torch.no_grad():
            net[0].weight.zero_()
            net[0].bias.fill_(-1)
        assert (twin(inputs) != net(inputs)).any()
        assert (twin[1](inputs) == inputs.relu()).all()
        assert counter.examples == 16


def test_counts_may_be_asked_for_at_any_time(net):
    with count_cofiring(net, "1") as counter:
        for passes in range(1, 4):
            net(torch.randn(30, 6))
            assert counter.examples == 30 * passes
            assert counter.counts().diagonal().max() <= 30 * passes
        half = counter + counter
        assert half.examples == 180


def test_on_a_device_counts_are_made_there(net, monkeypatch):
    """The way that activations on a GPU take, here with the processor in its place."""
    inputs = torch.randn(70, 6)
    with count_cofiring(net, "1 3") as plain:
        net(inputs)
    from nbutils import watch

    asked = []
    monkeypatch.setattr(watch, "on_processor", lambda _tensor: False)
    monkeypatch.setattr(watch, "device_counts", lambda fired, device: asked.append(device) or cofiring_counts(fired))
    with count_cofiring(net, "1 3") as counter:
        net(inputs)
        net(inputs)
    assert (counter.counts() == 2 * plain.counts()).all()
    assert counter.examples == 140
    assert asked == [torch.device("cpu")]


def test_convolutions_count_by_channel():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
    inputs = torch.randn(8, 1, 6, 6)
    with count_cofiring(net, "1", threshold=0.1) as counter:
        net(inputs)
    expected = capture_activations(net, inputs, "1")["1"] > 0.1
    assert (counter.counts() == cofiring_counts(expected)).all()


def test_snapshots_are_what_the_functions_say(net):
    inputs, labels = torch.randn(300, 6), torch.randint(0, 3, (300,))
    watch = Watch(net, inputs, labels, "1 3")
    net.train()
    watch.snapshot(epoch=0, loss=1.5)
    net[0].weight.data *= -1
    watch.snapshot(epoch=1, loss=1.0)
    assert net.training
    table = watch.table
    assert table["epoch"].tolist() == [0, 1]
    assert (table["seconds"] > 0).all()
    fired = firing(np.hstack(list(capture_activations(net, inputs, "1 3").values())))
    expected = {**measure_communities(fired), **measure_entropies(fired, labels, np.arange(30) >= 20)}
    assert all(table.loc[1, name] == pytest.approx(value) for name, value in expected.items())
    assert table.loc[0, "modularity"] != table.loc[1, "modularity"]


def test_the_callback_answers_every_hook_and_acts_on_one(net):
    watch = Watch(net, torch.randn(50, 6), layers="1")
    callback = watch.callback()
    callback.setup(None, net, stage="fit")
    callback.on_train_start(SimpleNamespace(current_epoch=0, is_global_zero=True), net)
    for epoch in range(2):
        callback.on_train_batch_end(None, net, None, None, 0)
        for first in (True, False):  # of two processes, one looks
            callback.on_train_epoch_end(SimpleNamespace(current_epoch=epoch, is_global_zero=first), net)
    callback.teardown(None, net, stage="fit")
    assert watch.table["epoch"].tolist() == [0, 1, 2]
    assert callback.state_dict() == {}
    with pytest.raises(AttributeError):
        callback.nonsense  # noqa: B018


def test_mistakes_are_named(net):
    with pytest.raises(ValueError, match="matches none of the model's layers"):
        Watch(net, torch.randn(5, 6), layers="conv*")
    with pytest.raises(ValueError, match="labels must have shape"):
        Watch(net, torch.randn(5, 6), [0, 1], "1")
    with pytest.raises(ValueError, match="matches none"), count_cofiring(net, "x"):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "top:2"}, "rule must be"),
        ({"rule": 5}, "rule must be"),
        ({"layers": 3}, "layers must be wildcards over layer names"),
        ({"layers": ["1", 3]}, "layers must be wildcards over layer names"),
        ({"layout": "last"}, "layout must be one of"),
        ({"spec": {"density": 0.1}}, "spec must be a MeasureSpec, or None"),
        ({"labels": [0] * 49}, "labels must have shape"),
        ({"inputs": np.zeros((5, 2), complex)}, "inputs must hold real numbers"),
    ],
)
def test_bad_arguments_of_a_watch_are_refused_before_any_training(net, options, message):
    with pytest.raises(ValueError, match=message):
        Watch(net, **{"inputs": torch.randn(50, 6), **options})


def test_facts_may_not_take_the_names_of_measures(net):
    watch = Watch(net, torch.randn(50, 6), torch.arange(50) % 3, "1 3")
    for name in ("modularity", "seconds", "pattern_entropy"):
        with pytest.raises(ValueError, match=f"'{name}' is the name of a measure; give the fact 5 another name"):
            watch.snapshot(epoch=0, **{name: 5})
    assert watch.table.empty
    assert watch.snapshot(epoch=0)["modularity"] >= 0


def test_nan_is_named_in_snapshots_and_counts(net):
    with pytest.raises(NonFiniteError, match="layer '1' holds 20 NaN or infinite activations"):
        Watch(net, torch.tensor([[float("nan")] * 6] + [[1.0] * 6] * 9), layers="1").snapshot()
    watch = Watch(net, torch.randn(50, 6), layers="1 3")
    with torch.no_grad():
        net[2].bias[4] = float("nan")
    with pytest.raises(NonFiniteError, match="layer '3' holds 50 NaN or infinite activations"):
        watch.snapshot()
    with count_cofiring(net, "1 3") as counter:
        for _ in range(2):
            with pytest.raises(NonFiniteError, match="layer '3' holds 7 NaN or infinite activations"):
                net(torch.randn(7, 6))
        with torch.no_grad():
            net[2].bias[4] = 1.0
        net(inputs := torch.randn(7, 6))
    assert counter.examples == 7  # nothing is left of the passes that failed
    hidden = torch.cat([net[:2](inputs), net[:4](inputs)], dim=1)
    assert (counter.counts() == cofiring_counts(hidden > 0)).all()


@pytest.mark.parametrize("batch", [1, 63, 65, 700, 2048, 2049, 5000])
def test_batches_of_any_size_give_the_counts_of_all_at_once(net, batch):
    inputs = torch.randn(2 * batch + 3, 6)
    with count_cofiring(net, "1 3", threshold=0.05) as counter:
        for part in inputs.split(batch):
            net(part)
    hidden = torch.cat([net[:2](inputs), net[:4](inputs)], dim=1)
    assert (counter.counts() == cofiring_counts(hidden > 0.05)).all()


def test_large_but_finite_activations_are_counted():
    net, inputs = nn.Sequential(nn.Identity()), torch.full((30, 6), 3e38)
    with count_cofiring(net) as counter:
        net(inputs)
    assert (counter.counts() == 30).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("threshold", "examples"), [(1e300, 0), (-1e300, 30)])
def test_thresholds_beyond_single_precision_are_exceeded_by_none_or_by_all(threshold, examples):
    net = nn.Sequential(nn.Identity())
    with count_cofiring(net, threshold=threshold) as counter:
        net(torch.randn(30, 6))
    assert (counter.counts() == examples).all()


def test_a_watch_holds_the_batches_of_a_loader(net):
    inputs, labels = torch.randn(50, 6), torch.arange(50) % 3
    data = TensorDataset(inputs, labels)
    watched = Watch(net, DataLoader(data, batch_size=16), labels, "1 3")
    assert (
        watched.snapshot().items()
        >= {
            name: value for name, value in Watch(net, inputs, labels, "1 3").snapshot().items() if name != "seconds"
        }.items()
    )
    once = Watch(net, iter(DataLoader(data, batch_size=16, shuffle=True)), layers="1")
    assert once.snapshot()["modularity"] == once.snapshot()["modularity"]
    for mixed in (
        {"batch_size": 16, "shuffle": True},
        {"sampler": SubsetRandomSampler(range(50))},
        {"sampler": WeightedRandomSampler(torch.ones(50), 50)},
        {"batch_sampler": BatchSampler(RandomSampler(data), 16, drop_last=False)},
    ):
        with pytest.raises(ValueError, match="labels do not fit inputs, a DataLoader that shuffles"):
            Watch(net, DataLoader(data, **mixed), labels, "1")


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "0", None, True])
def test_thresholds_that_are_no_numbers_are_refused(net, threshold):
    with pytest.raises(ValueError, match="threshold must be a finite number"), count_cofiring(net, "1", threshold):
        pass


def test_the_model_s_first_tensor_says_how_many_examples_there_are():
    class Several(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, 6)

        def forward(self, pair, *, scale: torch.Tensor) -> torch.Tensor:
            return self.linear(pair["x"]) * scale

    net, inputs = Several(), torch.randn(6, 6)
    with count_cofiring(net) as counter:
        net({"x": inputs}, scale=torch.ones(6, 1))
    assert (counter.counts() == cofiring_counts(net.linear(inputs).detach() > 0)).all()


def test_a_batch_whose_dimensions_cannot_be_told_apart_is_refused():
    class Fixed(nn.Module):
        """Takes six examples only."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x.reshape(6, 6))

    net = Fixed()
    sentence = r"layer 'linear' gave shape \(6, 6\) for a batch of 6 examples; which dimension holds them is not clear"
    with count_cofiring(net), pytest.raises(ValueError, match=sentence):
        net(torch.randn(6, 6))


def test_a_watch_takes_what_is_proposed():
    """Neither what goes into an activation function nor what the network returns."""
    inputs = torch.randn(60, 6)
    net = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 15), nn.ReLU(), nn.Linear(15, 3))
    watch = Watch(net, inputs)
    assert watch.layers == ["1", "3"]
    assert watch.snapshot()["modularity"] == Watch(net, inputs, layers="1 3").snapshot()["modularity"]
