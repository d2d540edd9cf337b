"""`gametape worlds make`: a suite on disk, or one line about what is wrong."""

from itertools import chain
from pathlib import Path

from gametape.tasks.worlds.suite import load_suite

from .command import run

KNOBS = {
    "--count": "3",
    "--horizon": "16",
    "--load-bearing": "2",
    "--base-rate": "0.05",
    "--error-delay": "1",
    "--hints": "instance",
    "--seed": "4",
}


def test_a_suite_is_made(tmp_path):
    done = run("worlds", "make", "--out", tmp_path / "suite", *chain(*KNOBS.items()), "--json")
    assert (done.code, done.err) == (0, "")
    assert done.answer["suite"] == str(tmp_path / "suite")
    assert [Path(task).parent for task in done.answer["tasks"]] == [tmp_path / "suite"] * 3
    worlds = load_suite(tmp_path / "suite")
    assert {world.bucket for world in worlds} == {"any-h16-m2-p0.05-d1-instance-all"}


def test_what_makes_no_world_is_one_line(tmp_path):
    for words, said in (
        (["--horizon", "3"], "--horizon: expected greater than or equal to 4"),
        (["--base-rate", "nan"], "--base-rate: expected a finite number"),
        (["--count", "0"], "number of worlds"),
    ):
        done = run("worlds", "make", "--out", tmp_path / "suite", *words)
        assert done.code == 2
        assert said in done.err
        assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "suite").exists()
