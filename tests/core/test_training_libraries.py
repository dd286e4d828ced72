"""Snapshots in real runs of Lightning and of Hugging Face's Trainer, and what they leave in CSV and TensorBoard."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from nbutils.data.datasets import load_dataset
from nbutils.data.pictures import torchvision_datasets
from nbutils.watch import Watch

DATA = load_dataset("digits", examples=200)
X, Y = torch.from_numpy(DATA.train_inputs), torch.from_numpy(DATA.train_labels)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 10))


def trained_by_lightning(net: nn.Module, folder, *callbacks) -> nn.Module:
    torchvision_datasets()  # which both libraries import: where its compiled part does not fit, it is read without
    import lightning

    class Classifier(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch, _number):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), 50)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    torch.manual_seed(1)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=list(callbacks), default_root_dir=folder, **quiet
    )
    trainer.fit(Classifier(), loader)
    return net


def trained_by_hugging_face(net: nn.Module, folder, *callbacks) -> nn.Module:
    torchvision_datasets()
    from transformers import Trainer, TrainingArguments

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x, labels):
            return {"loss": nn.functional.cross_entropy(self.net(x), labels)}

    rows = [{"x": x, "labels": y} for x, y in zip(X, Y, strict=True)]
    arguments = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=50, use_cpu=True, report_to=[], save_strategy="no",
        disable_tqdm=True, seed=1,
    )  # fmt: skip
    Trainer(Classifier(), arguments, train_dataset=rows, callbacks=list(callbacks)).train()
    return net


@pytest.mark.slow(15)
@pytest.mark.parametrize("fit", [trained_by_lightning, trained_by_hugging_face])
@pytest.mark.filterwarnings("ignore")
def test_a_snapshot_before_training_and_after_every_epoch_changes_nothing(fit, tmp_path):
    plain = fit(network(), tmp_path)
    net, path = network(), tmp_path / "watched.csv"
    watch = Watch(net, X, Y, layers="1", log=path)
    fit(net, tmp_path, watch.callback())
    for a, b in zip(plain.parameters(), net.parameters(), strict=True):
        assert torch.equal(a, b)
    assert watch.table["epoch"].tolist() == [0, 1, 2]
    assert watch.table["modularity"].nunique() == 3
    untrained = Watch(network(), X, Y, layers="1").snapshot(epoch=0)
    assert untrained["modularity"] == watch.table["modularity"][0]
    pd.testing.assert_frame_equal(pd.read_csv(path, float_precision="round_trip"), watch.table)


def test_a_csv_goes_on_where_another_run_stopped(tmp_path):
    net, path = network(), tmp_path / "log.csv"
    for epoch in range(2):  # each a process of its own
        Watch(net, X, layers="1", log=str(path)).snapshot(epoch=epoch, note="a, b")
    found = pd.read_csv(path)
    assert found["epoch"].tolist() == [0, 1]
    assert found["note"].tolist() == ["a, b"] * 2
    other = Watch(net, X, layers="1", log=path)
    with pytest.raises(ValueError, match=r"log .*log.csv has other columns .* use another file"):
        other.snapshot(epoch=2)
    assert len(pd.read_csv(path)) == 2
    assert len(other.table) == 1  # what was measured is not lost


def test_tensorboard_gets_every_number_at_its_epoch(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        watch = Watch(network(), X, Y, layers="1", log=writer)
        for epoch in (0, 5):
            watch.snapshot(epoch=epoch, note="words are left out")
    events = EventAccumulator(str(tmp_path)).Reload()
    scalars = events.Scalars("nbutils/modularity")
    assert [one.step for one in scalars] == [0, 5]
    assert np.allclose([one.value for one in scalars], watch.table["modularity"])
    assert "nbutils/note" not in events.Tags()["scalars"]


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("log.txt", r"ends in \.csv"),
        (5, r"ends in \.csv, or have add_scalar, received 5"),
        ("no/log.csv", "in a folder"),
    ],
)
def test_a_log_that_cannot_be_is_refused_at_once(log, words):
    with pytest.raises(ValueError, match=f"log must be .*{words}"):
        Watch(network(), X, layers="1", log=log)
