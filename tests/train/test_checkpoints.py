"""Checkpoints: whole or not there."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gametape.core.errors import BadInput
from gametape.engines.model_names import list_checkpoints
from gametape.train.checkpoints import Checkpoint, CheckpointNotSaved, clear_unfinished, latest, load, save

SOME = Checkpoint({"w": torch.arange(4.0)}, {"step": 3}, {"w.exp_avg": torch.ones(4)}, files={"config.json": b"{}"})


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    back = load(save(tmp_path, 3, SOME, keep=2))
    assert torch.equal(back.weights["w"], SOME.weights["w"])
    assert torch.equal(back.optimizer["w.exp_avg"], SOME.optimizer["w.exp_avg"])
    assert back.state == SOME.state
    model = tmp_path / "00000003" / "model"
    assert (model / "config.json").read_bytes() == b"{}"
    assert sorted(path.name for path in model.iterdir()) == ["config.json", "model.safetensors"]


def test_one_of_an_earlier_version_still_loads(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, 3, SOME, keep=2)
    for path in (checkpoint / "model").iterdir():
        path.rename(checkpoint / path.name)
    (checkpoint / "model").rmdir()
    assert latest(tmp_path) == checkpoint
    assert torch.equal(load(checkpoint).weights["w"], SOME.weights["w"])


def test_the_last_few_are_kept(tmp_path: Path) -> None:
    for step in range(5):
        save(tmp_path, step, SOME, keep=2)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["00000003", "00000004"]


def test_what_was_half_written_is_never_taken_for_one(tmp_path: Path) -> None:
    save(tmp_path, 1, SOME, keep=2)
    (tmp_path / ".00000002.0a0b0c0d").mkdir()
    assert latest(tmp_path) == tmp_path / "00000001"
    clear_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]


def test_damage_is_told(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, 1, SOME, keep=2)
    (checkpoint / "model" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="not a checkpoint that can be read"):
        load(checkpoint)


def test_a_full_disk_leaves_the_last_one_intact(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the write fails in the middle of the large file."""
    program = f"""
import resource, signal, sys, torch
from pathlib import Path
from gametape.train.checkpoints import Checkpoint, CheckpointNotSaved, save
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
place = Path({str(tmp_path)!r})
save(place, 1, Checkpoint({{"w": torch.zeros(10)}}, {{}}), keep=2)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    save(place, 2, Checkpoint({{"w": torch.zeros(100_000)}}, {{}}), keep=2)
except CheckpointNotSaved as error:
    print(error)
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "checkpoint 2 could not be written" in output
    assert f"{tmp_path / '00000001'} is intact" in output
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]
    assert load(tmp_path / "00000001").weights["w"].shape == (10,)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointNotSaved, match="there is none before it"):
        save(tmp_path / "file" / "checkpoints", 1, SOME, keep=1)
