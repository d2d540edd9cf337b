"""A demo on disk: created, resumed, and refused where its file is damaged."""

import json
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.demo.state import DemoState


def test_a_demo_is_taken_up_as_it_was_begun(tmp_path: Path) -> None:
    DemoState.new(tmp_path / "demo", tmp_path, seed=7, quick=True).keep(mined={"names": ["a"]})
    again = DemoState.resume(tmp_path / "demo", tmp_path)
    assert (again.seed, again.data["quick"], again.data["mined"]) == (7, True, {"names": ["a"]})
    with pytest.raises(BadInput, match="--resume"):
        DemoState.new(tmp_path / "demo", tmp_path, seed=7, quick=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rlvr").mkdir()
    with pytest.raises(BadInput, match="a new directory"):
        DemoState.new(tmp_path / "other", tmp_path, seed=7, quick=True)
    with pytest.raises(BadInput, match="cannot be written"):
        DemoState.new(tmp_path / "demo" / "demo.json" / "below", tmp_path, seed=7, quick=True)
    with pytest.raises(BadInput, match="no demo here"):
        DemoState.resume(tmp_path, tmp_path)
    for output in (
        "[]",
        "{}",
        again_with(again, seed="x"),
        again_with(again, seconds=None),
        again_with(again, mined=5),
    ):
        (tmp_path / "demo" / "demo.json").write_text(output)
        with pytest.raises(BadInput, match=r"demo.json: .*not what a demo writes there"):
            DemoState.resume(tmp_path / "demo", tmp_path)


def again_with(state: DemoState, **other: object) -> str:
    return json.dumps(state.data | other)
