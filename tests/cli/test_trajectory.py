import functools
import json
from pathlib import Path
from typing import Any

import pytest

from gametape.core.trajectory import Trajectory
from gametape.record.journal import Journal
from gametape.record.trajectory_file import load_trajectory

from ..core.documents import GOLDEN, small, text
from .command import Ran, run

OLD, _, NEW = GOLDEN


gametape = functools.partial(run, "trajectory")


def assert_one_line(ran: Ran, expected: str) -> None:
    assert ran.code == 2
    assert ran.out == "" or ran.answer["exit_code"] == 2
    assert len(ran.err.splitlines()) == 1
    assert expected in ran.err


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_a_valid_file_is_told_with_what_training_needs_to_know() -> None:
    ran = gametape("check", NEW, "--json")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 1
    assert {key: ran.answer[key] for key in ("valid", "errors", "turns", "tokens_exact", "mask_ok")} == {
        "valid": True,
        "errors": [],
        "turns": 3,
        "tokens_exact": True,
        "mask_ok": True,
    }


def test_an_invalid_file_is_a_no_that_says_where(tmp_path: Path) -> None:
    document = small()
    document["steps"][1]["metrics"]["logprobs"][1] = "x"
    document["steps"][0]["message"] = 5
    written(tmp_path / "bad.json", document)
    ran = gametape("check", "bad.json", "--json", cwd=tmp_path)
    assert ran.code == 1
    assert ran.answer["valid"] is False
    assert ran.answer["errors"] == [
        {
            "file": str(tmp_path / "bad.json"),
            "path": "steps[0].message",
            "expected": "a string or a list of content parts",
        },
        {
            "file": str(tmp_path / "bad.json"),
            "path": "steps[1].metrics.logprobs[1]",
            "expected": "a finite number that is at most 0",
        },
    ]


def test_a_broken_mask_and_inexact_tokens_are_told_apart(tmp_path: Path) -> None:
    document = small()
    document["steps"][1]["extra"]["gametape"]["loss_mask"] = [1]
    ran = gametape("check", written(tmp_path / "mask.json", document), "--json")
    assert (ran.code, ran.answer["valid"], ran.answer["mask_ok"]) == (1, False, False)
    document = small()
    document["steps"].append(document["steps"][1] | {"step_id": 3})
    ran = gametape("check", written(tmp_path / "tokens.json", document), "--json")
    assert (ran.code, ran.answer["tokens_exact"], ran.answer["mask_ok"]) == (0, False, True)
    del document["steps"][1:]
    ran = gametape("check", written(tmp_path / "none.json", document), "--json")
    assert (ran.code, ran.answer["tokens_exact"], ran.answer["mask_ok"]) == (0, None, None)


def test_several_files_are_one_answer_and_one_each(tmp_path: Path) -> None:
    bad = written(tmp_path / "bad.json", [])
    good = written(tmp_path / "good.json", small())
    answer = gametape("check", good, bad, NEW, "--json").answer
    assert (answer["valid"], answer["turns"], len(answer["errors"])) == (False, 4, 1)
    assert [(one["file"], one["valid"], one["turns"]) for one in answer["files"]] == [
        (str(good), True, 1),
        (str(bad), False, None),
        (str(NEW), True, 3),
    ]
    assert gametape("check", good, bad).code == 1
    assert gametape("check", good, NEW).code == 0


def test_a_torn_journal_is_valid_and_the_tear_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    Journal.create(path, Trajectory.model_validate(small())).release()
    path.write_bytes(path.read_bytes()[:-3])
    answer = gametape("check", path, "--json").answer
    assert (answer["valid"], answer["turns"]) == (True, 0)
    assert answer["files"][0]["torn_bytes"] > 0
    assert "unfinished last line" in gametape("check", path).out


def test_people_read_one_line_a_file_and_one_a_problem(tmp_path: Path) -> None:
    bad = written(tmp_path / "bad [red].json", small() | {"schema_version": "ATIF-v9"})
    lines = gametape("check", NEW, bad).out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("valid")
    assert "tokens exact, mask ok" in lines[0]
    assert lines[1] == f"not valid  {bad}"
    assert "schema_version: expected 'ATIF-v1.0'" in lines[2]


def test_convert_upgrades_and_keeps_the_rest(tmp_path: Path) -> None:
    before = OLD.read_bytes()
    ran = gametape("convert", OLD, "--out", "new.json", "--json", cwd=tmp_path)
    assert ran.code == 0
    assert (ran.answer["valid"], ran.answer["written"]) == (True, str(tmp_path / "new.json"))
    new, old = load_trajectory(tmp_path / "new.json").model_dump(), json.loads(before)
    assert new["schema_version"] == "ATIF-v1.8"
    assert new["x_exporter"] == old["x_exporter"]
    assert text(new["steps"][2]) == text(old["steps"][2])
    assert OLD.read_bytes() == before


def test_convert_finishes_a_journal_without_touching_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    Journal.create(path, Trajectory.model_validate(small())).release()
    before = path.read_bytes()
    assert gametape("convert", path, "--out", tmp_path / "t.json").code == 0
    assert json.loads((tmp_path / "t.json").read_bytes()) == small()
    assert path.read_bytes() == before


def test_what_cannot_be_used_is_one_line_and_exit_2(tmp_path: Path) -> None:
    good = written(tmp_path / "good.json", small())
    (tmp_path / "link.json").symlink_to(good)
    (tmp_path / "hard.json").hardlink_to(good)
    bad = written(tmp_path / "bad.json", small() | {"steps": 1})
    out = tmp_path / "out.json"
    assert_one_line(gametape("check", tmp_path / "none.json"), "No such file")
    assert_one_line(gametape("check", good, tmp_path, "--json"), "a directory")
    assert_one_line(gametape("convert", bad, "--out", out), "bad.json: steps: expected a valid list")
    assert_one_line(gametape("convert", tmp_path / "none.json", "--out", out), "No such file")
    for same in (good, tmp_path / "link.json", tmp_path / "hard.json"):
        assert_one_line(gametape("convert", good, "--out", same), "is the input")
    assert_one_line(gametape("convert", good, "--out", tmp_path), "not a regular file")
    assert_one_line(gametape("convert", good, "--out", "/dev/null"), "not a regular file")
    assert_one_line(gametape("convert", good, "--out", tmp_path / "no" / "out.json"), "cannot be written")
    assert not out.exists()
    assert Path("/dev/null").is_char_device()
    assert json.loads(good.read_bytes()) == small()


@pytest.mark.parametrize("arguments", [["check"], ["convert", "a.json"], ["check", "--no-such-option"]])
def test_wrong_usage_is_exit_2(arguments: list[str]) -> None:
    assert gametape(*arguments).code == 2


@pytest.mark.parametrize("command", ["check", "convert"])
def test_help_teaches_with_an_example(command: str) -> None:
    ran = gametape(command, "--help")
    assert ran.code == 0
    assert f"Example:\n    gametape trajectory {command} " in ran.out
