"""A run that is killed and goes on with another number of ranks has the curve, and the weights, of one that was not."""

import json
from pathlib import Path

import pytest
import torch

from gametape.train import checkpoints
from gametape.train.checkpoint_shards import read_into, saved_shapes
from gametape.train.ranks import Ranks
from tests.train.sharded.launch import run_ranks

KILLED = -9


def played(
    directory: Path, lives: list[tuple[int, int]], *setting: str
) -> tuple[list[dict[str, float]], dict[str, torch.Tensor]]:
    """With each number of ranks in turn, up to an update."""
    directory.mkdir()
    for world, until in lives:
        run_ranks("tests.train.sharded.resume_rank", world, *setting, str(until), directory, ends=KILLED)
    lines = [json.loads(line) for line in (directory / "curve.jsonl").read_text().splitlines()]
    saved = checkpoints.latest(directory / "checkpoints")
    assert saved
    tensors = {name: torch.empty(shape) for name, shape in saved_shapes(saved).items()}
    read_into(saved, tensors, Ranks())
    return lines, tensors


@pytest.mark.slow
@pytest.mark.parametrize("setting", [("qwen3-moe", "muon", "full"), ("qwen3", "adamw", "lora")])
def test_killed_and_resumed_on_another_number_of_ranks(tmp_path: Path, setting: tuple[str, str, str]) -> None:
    curve, end = played(tmp_path / "changing", [(1, 2), (2, 4), (1, 6)], *setting)
    expected_curve, expected_end = played(tmp_path / "alone", [(1, 6)], *setting)
    assert [line["step"] for line in curve] == list(range(6))
    for line, expected in zip(curve, expected_curve, strict=True):
        assert line["loss"] == pytest.approx(expected["loss"], rel=1e-4)
        assert line["gradient"] == pytest.approx(expected["gradient"], rel=1e-4)
    assert len({line["loss"] for line in curve}) == 6
    assert end.keys() == expected_end.keys()
    assert {name.partition("/")[0] for name in end} == {"weights", "optimizer", "teacher"}
    for name, tensor in end.items():
        torch.testing.assert_close(tensor, expected_end[name], atol=1e-4, rtol=1e-4, msg=name)
