"""Suites on disk are read back as they were drawn, and what is none is refused in one line."""

import json

import pytest

from gametape.core.errors import BadInput
from gametape.tasks.worlds.spec import PRESETS, WorldSpec, preset
from gametape.tasks.worlds.suite import SUITE_FILE, is_suite, load_suite, make_suite, preset_worlds


def test_a_suite_is_read_back(tmp_path):
    spec = WorldSpec(seed=5, horizon=8, load_bearing=2, hints="instance", retry=True)
    paths = make_suite(tmp_path / "suite", spec, 4)
    assert is_suite(tmp_path / "suite")
    worlds = load_suite(tmp_path / "suite")
    assert len(worlds) == len(paths) == len({world.name for world in worlds}) == 4
    assert {world.bucket for world in worlds} == {spec.bucket}
    make_suite(tmp_path / "again", spec, 4)
    assert load_suite(tmp_path / "again") == worlds


def test_a_directory_in_use_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        make_suite(tmp_path, WorldSpec(), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("count", [0, -1, 100_001])
def test_a_suite_has_a_sensible_size(tmp_path, count):
    with pytest.raises(BadInput, match="number of worlds"):
        make_suite(tmp_path / "new", WorldSpec(), count)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "suite.json"),
        ("[]", "suite.json"),
        ('{"spec": {}, "worlds": ["../../etc/passwd"]}', "beside it"),
        ('{"spec": {"horizon": 3}, "worlds": []}', "spec.horizon"),
        ('{"spec": {}, "worlds": ["gone.json"]}', "gone.json: cannot be read"),
        ('{"spec": {}, "worlds": [], "more": 1}', "more: there is no such field"),
    ],
)
def test_what_is_no_suite_is_refused(tmp_path, text, said):
    (tmp_path / SUITE_FILE).write_text(text)
    with pytest.raises(BadInput, match=said.replace("[", r"\[")):
        load_suite(tmp_path)


def test_a_world_that_was_spoilt_is_named(tmp_path):
    (path,) = make_suite(tmp_path, WorldSpec(), 1)
    path.write_text(json.dumps({"horizon": "12"}))
    with pytest.raises(BadInput, match=r"world-00001.json: horizon: expected"):
        load_suite(tmp_path)
    path.write_bytes(b"\xff")
    with pytest.raises(BadInput, match="not UTF-8"):
        load_suite(tmp_path)


def test_named_worlds_come_from_their_preset():
    worlds = preset_worlds("worlds:starved", 3, seed=2)
    assert {world.bucket for world in worlds} == {PRESETS["starved"].bucket}
    assert worlds == preset_worlds("starved", 3, seed=2)
    assert worlds != preset_worlds("starved", 3, seed=3)
    with pytest.raises(BadInput, match="easy, moderate, starved, long"):
        preset("hard")
