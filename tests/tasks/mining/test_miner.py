from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.tasks.loader import read_task
from gametape.tasks.mining import miner
from gametape.tasks.mining.miner import MiningRequest, mine
from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.project import ProjectRefused

from .made import SHELF, tree_of
from .tricky import TRICKY


class Heard:
    """An observer that records every call."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.counted: list[tuple[int, int]] = []
        self.begun: list[tuple[str, int, int]] = []
        self.records: list[dict[str, Any]] = []

    def on_status(self, status: str) -> None:
        self.said.append(status)

    def on_count(self, done: int, total: int) -> None:
        self.counted.append((done, total))

    def on_phase_start(self, phase: str, total: int, done: Sequence[dict[str, Any]]) -> None:
        self.begun.append((phase, total, len(done)))

    def on_candidate_done(self, record: dict[str, Any]) -> None:
        self.records.append(record)


@pytest.fixture
def request_(
    tmp_path: Path, interpreter: Path, learned: SuiteAnalysis, monkeypatch: pytest.MonkeyPatch
) -> MiningRequest:
    """To mine the code base that these tests have looked over already."""
    monkeypatch.setattr(miner, "analyze_suite", lambda *_: learned)
    (tmp_path / "tricky").mkdir()
    tree_of(TRICKY).write_to(tmp_path / "tricky")
    return MiningRequest(tmp_path / "tricky", tmp_path / "out", tmp_path / "home", python=interpreter, jobs=2)


def changed(request: MiningRequest, **changes: Any) -> MiningRequest:
    return MiningRequest(**{**vars(request), **changes})


def test_every_candidate_is_a_task_or_has_a_reason(request_: MiningRequest) -> None:
    heard = Heard()
    summary = mine(request_, heard)
    assert summary.project == "tricky 1.2"
    assert summary.rejected == {"leak": 3, "nothing_fails": 1, "no_held_out": 1, "one_is_enough": 1}
    assert len(summary.valid) + sum(summary.rejected.values()) == len(summary.records) == summary.candidates_tried
    assert heard.begun == [("candidate", len(summary.records), 0)]
    by_key = {record["candidate"]: record for record in heard.records}
    assert [by_key[record["candidate"]] for record in summary.records] == summary.records
    for record in summary.valid:
        subject = read_task(request_.out / record["task"])
        assert len(subject.task.tests.fail_to_pass) == record["tests"]["fail_to_pass"]
    assert {path.name for path in request_.out.iterdir()} == {"mine.jsonl", *(one["task"] for one in summary.valid)}

    again = Heard()
    resumed = mine(changed(request_, resume=True), again)
    assert resumed.records == summary.records
    assert (resumed.candidates_tried, resumed.seconds_per_candidate, again.records) == (0, None, [])
    assert again.begun == [("candidate", len(summary.records), len(summary.records))]


def test_chains_come_once_each(request_: MiningRequest) -> None:
    summary = mine(changed(request_, chain=2, limit=2), Heard())
    assert summary.valid
    assert max(Counter(record["candidate"] for record in summary.records).values()) == 1


def test_a_refusal_does_not_throw_away_what_is_finished(
    request_: MiningRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = mine(changed(request_, limit=1), Heard())
    before = (request_.out / "mine.jsonl").read_bytes()

    def refuses(*_: object) -> None:
        raise ProjectRefused("environment", "no wheel today")

    monkeypatch.setattr(miner, "check_given_interpreter", refuses)
    with pytest.raises(ProjectRefused):
        mine(changed(request_, resume=True), Heard())
    assert (request_.out / "mine.jsonl").read_bytes() == before
    assert all((request_.out / record["task"]).is_dir() for record in done.valid)


def test_bad_input_leaves_no_directory_behind(request_: MiningRequest, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        mine(changed(request_, python=tmp_path / "no-python"), Heard())
    assert not request_.out.exists()


def test_a_changed_source_is_not_continued(request_: MiningRequest) -> None:
    mine(changed(request_, limit=1), Heard())
    (request_.source / "tricky/code.py").write_text(SHELF["shelf/sums.py"])
    with pytest.raises(BadInput, match="begun with source"):
        mine(changed(request_, resume=True), Heard())


@pytest.mark.parametrize(
    "together", [{"kind": "bug", "union": 2}, {"kind": "bug", "chain": 2}, {"union": 2, "chain": 2}]
)
def test_what_cannot_be_asked_for_at_once_is_bad_input(together: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--union and --chain"):
        MiningRequest(tmp_path, tmp_path / "out", tmp_path / "home", **together)
