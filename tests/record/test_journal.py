import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.core.atif import FinalMetrics
from gametape.core.errors import BadInput, GametapeError
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.record import journal as journal_module
from gametape.record.journal import Journal
from gametape.record.trajectory_file import load_trajectory, parse_bytes, parse_file, save_trajectory

from ..core.documents import SMALL, every_place, replaced, small, text, trajectories

SMALL_STEPS = [Step.model_validate(step) for step in SMALL["steps"]]


def begun(**fields: Any) -> Trajectory:
    return Trajectory.model_validate(small() | {"steps": []} | fields)


def with_two_turns(path: Path) -> bytes:
    with Journal.create(path, begun()) as journal:
        for step in SMALL_STEPS:
            journal.append(step)
    return path.read_bytes()


def refused(action: Any, *arguments: Any) -> str:
    with pytest.raises(GametapeError) as caught:
        action(*arguments)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@settings(deadline=None, max_examples=40)
@given(document=trajectories())
def test_what_went_through_a_journal_equals_what_was_saved_directly(
    document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    trajectory = Trajectory.model_validate(document)
    save_trajectory(folder / "direct.json", trajectory)
    with Journal.create(folder / "t.jsonl", Trajectory.model_validate(document | {"steps": []})) as journal:
        for step in trajectory.steps:
            journal.append(step)
        assert load_trajectory(folder / "t.jsonl") == journal.trajectory == trajectory
        assert journal.close() == folder / "t.json"
    assert (folder / "t.json").read_bytes() == (folder / "direct.json").read_bytes()
    assert not (folder / "t.jsonl").exists()


@settings(deadline=None, max_examples=60)
@given(document=trajectories(), data=st.data())
def test_any_cut_opens_with_exactly_the_turns_whose_line_is_whole(
    document: dict[str, Any], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.jsonl"
    Journal.create(path, Trajectory.model_validate(document)).release()
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    lines = whole[:cut].count(b"\n")
    result = parse_file(path)
    if lines == 0:
        assert result.problems
        return
    assert result.trajectory is not None
    assert text([step.model_dump() for step in result.trajectory.steps]) == text(document["steps"][: lines - 1])
    assert result.torn_bytes == cut - (whole.rfind(b"\n", 0, cut) + 1)


def test_every_cut_of_a_turn_with_subagents_has_the_whole_turn_or_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    step = small()["steps"][1]
    step["observation"]["results"][0]["subagent_trajectory_ref"] = [{"trajectory_id": "s"}]
    child = Trajectory.model_validate(small() | {"trajectory_id": "s"})
    with Journal.create(path, begun()) as journal:
        journal.append(SMALL_STEPS[0])
        before = path.stat().st_size
        journal.append(Step.model_validate(step), [child])
    whole = path.read_bytes()
    assert load_trajectory(path).subagent_trajectories == [child]
    for cut in range(before, len(whole)):
        result = parse_bytes(whole[:cut])
        assert result.trajectory is not None
        assert len(result.trajectory.steps) == 1
        assert result.trajectory.subagent_trajectories is None
        assert result.complete_bytes == before
    path.write_bytes(whole[:-1])
    with Journal.open(path) as journal:
        journal.append(Step.model_validate(step), [child])
    assert path.read_bytes() == whole


def with_subagents(path: Path) -> bytes:
    """A journal that has begun with one embedded trajectory and gained another."""
    children = [Trajectory.model_validate(small() | {"trajectory_id": name}) for name in "ab"]
    document = begun().model_dump() | {"subagent_trajectories": [children[0].model_dump()]}
    with Journal.create(path, Trajectory.model_validate(document)) as journal:
        journal.append(SMALL_STEPS[0])
        journal.append(SMALL_STEPS[1], children[1:])
    assert load_trajectory(path).subagent_trajectories == children
    return path.read_bytes()


@pytest.mark.parametrize("value", [None, True, -1, 1.5, "", [], {}, {"a": 1}], ids=repr)
def test_any_value_in_any_place_of_a_journal_is_either_valid_or_refused(value: Any, tmp_path: Path) -> None:
    lines = with_subagents(tmp_path / "t.jsonl").splitlines()
    for number, line in enumerate(lines):
        for places in every_place(json.loads(line)):
            changed = json.dumps(replaced(json.loads(line), places, value)).encode()
            result = parse_bytes(b"\n".join([*lines[:number], changed, *lines[number + 1 :], b""]))
            assert (result.trajectory is None) == bool(result.problems)


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_a_journal_with_changed_bytes_is_either_valid_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = with_subagents(tmp_path_factory.mktemp("fuzz") / "t.jsonl")
    at = data.draw(st.integers(0, len(whole)))
    result = parse_bytes(whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + data.draw(st.integers(0, 4)) :])
    assert (result.trajectory is None) == bool(result.problems)


def test_continuing_drops_the_torn_line_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    whole = with_two_turns(path)
    path.write_bytes(whole[:-7])
    with Journal.open(path) as journal:
        torn = whole[:-7].split(b"\n")[-1]
        assert journal.torn_bytes == len(torn) > 0
        assert path.read_bytes() == whole[: -7 - len(torn)]
        assert journal.trajectory.steps == SMALL_STEPS[:1]
        journal.append(SMALL_STEPS[1])
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_bad_line_that_is_whole_is_an_error(line: int, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = with_two_turns(path).splitlines(keepends=True)
    for bad in (lines[line][:-9] + b"\n", b"\n", b"{}\n", b"[]\n"):
        path.write_bytes(b"".join([*lines[:line], bad, *lines[line + 1 :]]))
        before = path.read_bytes()
        refused(load_trajectory, path)
        refused(Journal.open, path)
        assert path.read_bytes() == before
    path.write_bytes(b"".join([*lines[:1], *lines[2:]]))
    assert "steps[0].step_id: expected 1" in refused(load_trajectory, path)


def test_only_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    code = "import sys, pathlib, gametape.record.journal as j; j.Journal.open(pathlib.Path(sys.argv[1]))"
    with Journal.create(path, begun()) as first:
        assert "another process is writing" in refused(Journal.open, path)
        other = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
        assert "another process is writing" in other.stderr
        first.append(SMALL_STEPS[0])
    with Journal.open(path) as second:
        assert "another process is writing" in refused(Journal.open, path)
        second.append(SMALL_STEPS[1])
    assert load_trajectory(path).steps == SMALL_STEPS


def test_a_name_is_begun_once_and_finished_once(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    whole = with_two_turns(path)
    assert "already there" in refused(Journal.create, path, begun())
    assert path.read_bytes() == whole
    Journal.open(path).close()
    assert "was closed" in refused(Journal.create, path, begun())
    path.write_bytes(whole)
    assert "was closed" in refused(Journal.open, path)
    assert "ends in .jsonl" in refused(Journal.create, tmp_path / "t.json", begun())
    assert "cannot be written" in refused(Journal.create, tmp_path / "no" / "t.jsonl", begun())
    assert "cannot be read" in refused(Journal.open, tmp_path / "none.jsonl")
    path.unlink()
    (tmp_path / "t.json").rename(path)
    assert "not a journal" in refused(Journal.open, path)
    assert load_trajectory(path).steps == SMALL_STEPS
    assert list(tmp_path.iterdir()) == [path]


def test_closing_adds_how_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with_two_turns(path)
    metrics = FinalMetrics(total_steps=2)
    finished = Journal.open(path).close(final_metrics=metrics, extra={"outcome": "passed"})
    assert load_trajectory(finished).outcome == "passed"
    assert load_trajectory(finished).final_metrics == metrics


def test_a_journal_without_a_turn_stays_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    assert Journal.create(path, begun()).close() == path
    assert load_trajectory(path).steps == []
    Journal.open(path).release()


def test_a_turn_that_could_not_be_read_back_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with Journal.create(path, begun()) as journal:
        before = path.read_bytes()
        first = SMALL_STEPS[0]
        assert "step_id: expected 1" in refused(journal.append, first.model_copy(update={"step_id": 2}))
        assert "source: expected" in refused(journal.append, first.model_copy(update={"source": "me"}))
        surrogate = Step.model_validate(small()["steps"][0] | {"x": "\ud800"})
        assert "steps[0].x: expected whole Unicode" in refused(journal.append, surrogate)
        a_set = Step.model_validate(small()["steps"][0] | {"x": {1, 2}})
        assert "JSON values only" in refused(journal.append, a_set)
        child = begun(trajectory_id="s")
        assert "subagent_trajectories" in refused(journal.append, first, [child])
        assert path.read_bytes() == before
        journal.append(first)
    assert load_trajectory(path).steps == [first]


def test_a_failed_sync_takes_the_turn_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    with Journal.create(path, begun()) as journal:
        journal.append(SMALL_STEPS[0])
        before = path.read_bytes()
        for error, kind in [
            (OSError(5, "Input/output error"), BadInput),
            (KeyboardInterrupt(), KeyboardInterrupt),
        ]:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", lambda fd, error=error: (_ for _ in ()).throw(error))
                with pytest.raises(kind):
                    journal.append(SMALL_STEPS[1])
            assert path.read_bytes() == before
        journal.append(SMALL_STEPS[1])
    assert load_trajectory(path).steps == SMALL_STEPS


def test_turns_are_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    synced: list[int] = []
    real = os.fsync
    with Journal.create(path, begun()) as journal:
        monkeypatch.setattr(os, "fsync", lambda fd: (real(fd), synced.append(os.fstat(fd).st_size)))
        journal.append(SMALL_STEPS[0])
        assert synced == [path.stat().st_size]


def test_the_journal_is_gone_only_after_the_file_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    with_two_turns(path)
    with Journal.open(path) as journal:
        monkeypatch.setattr(journal_module, "save_trajectory", lambda *_: (_ for _ in ()).throw(BadInput("no room")))
        assert refused(journal.close) == "no room"
        assert load_trajectory(path).steps == SMALL_STEPS
        monkeypatch.undo()
        finished = journal.close()
    assert json.loads(finished.read_bytes()) == SMALL
