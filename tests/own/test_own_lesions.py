"""The command that silences communities of a network of one's own."""

import numpy as np
import pandas as pd
import pytest

from nbutils.cli import main

FACTORY = """
import torch
from torch import nn
from torch.nn import functional

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.output = nn.Linear(64, 80), nn.Linear(80, 60), nn.Linear(60, 10)

    def forward(self, x):
        x = functional.relu(self.first(x.flatten(1)))
        return self.output(functional.relu(self.second(x)))
"""


@pytest.fixture
def factory(tmp_path):
    (tmp_path / "net.py").write_text(FACTORY)
    return f"{tmp_path / 'net.py'}:Net"


def test_the_command_writes_a_row_per_set(tmp_path, factory, capsys):
    path = tmp_path / "found" / "lesions.parquet"
    asked = ["lesion", "--model", factory, "--data", "digits", "--draws", "2", "--into", str(path)]
    assert main(asked) == 0
    told = capsys.readouterr().out
    table = pd.read_parquet(path)
    assert f"Table: {path}" in told
    assert f"accuracy {table['accuracy'].iloc[0]:.3f} on 180 images" in told
    assert {"whole", "unit", "unit control"} <= set(table["kind"])
    assert (table["draws"].dropna() <= 2).all()
    assert table["model"].unique().tolist() == [factory]
    assert (table["machine"] != "").all()
    assert main(asked) == 0
    again = pd.read_parquet(path)
    pd.testing.assert_frame_equal(table.drop(columns="time"), again.drop(columns="time"))


def test_what_it_cannot_use_is_told(tmp_path, factory, capsys):
    np.savez(tmp_path / "bare.npz", images=np.zeros((60, 64), np.float32))
    bare = ["lesion", "--model", factory, "--data", str(tmp_path / "bare.npz")]
    for asked, words in (
        (bare, "must hold labels"),
        (["lesion", "--model", "net:Net2", "--data", "digits"], "model: 'net:Net2' cannot be imported"),
        (["lesion", "--model", factory, "--data", "digits", "--images", "20"], "--images must be"),
    ):
        assert main([*asked, "--into", str(tmp_path / "none.parquet")]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "none.parquet").exists()
