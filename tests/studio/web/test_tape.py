"""A tape in slices: facts about every step, tokens with their texts, and what the coach's hints changed at each."""

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gametape.record.journal_format import header_line, step_line
from gametape.studio.web.export import write_export
from gametape.studio.web.tape import COMPACTION, EVENT, FAILED, FLAG, SLICE, TARGET

from ..runs import HOSTILE, make_run, make_trajectory, target
from .site import browser, open_site, step_of, write_tape


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    kept = [target("large.000", 0.5), target("large.000", 2.5), target("other", 9.0)]
    make_trajectory(make_run(tmp_path / "run", "rlvr_ttf", [], kept), "large.000")
    return browser(open_site(tmp_path))


def test_a_target_has_its_hint_and_what_the_last_update_measured(client: TestClient) -> None:
    told = client.get("/data/tape?run=run&rollout=large.000").json()
    assert [row[3] for row in told["facts"]] == [0, TARGET, 0]
    assert (told["advantage"], told["outcome"], told["turns"]) == (-0.25, "failed", 2)
    steps = client.get("/data/steps?run=run&rollout=large.000&first=0").json()["steps"]
    (hinted,) = steps[1]["targets"]
    assert (hinted["text"], hinted["author"], hinted["source"], hinted["noticed"]) == (
        "rule : mark before pack",
        "message",
        "tool_error",
        3,
    )
    columns = hinted["columns"]
    assert (hinted["update"], columns["kl"], columns["student"]) == (3, [2.5, 0.01], [-0.1, -0.2])
    assert columns["text"] == ["pack", HOSTILE.replace("\x1b", "?")]
    assert columns["teacher_top"][0] == [["mark", 0.95], ["pack", 0.02]]
    assert steps[0]["targets"] == steps[2]["targets"] == []


def test_tokens_come_with_everything_that_was_recorded_of_them(client: TestClient, tmp_path: Path) -> None:
    metrics = {"completion_token_ids": [0, 2, 99, 10**12], "logprobs": [-0.5, -1.5, -0.25, 0]}
    ours = {"loss_mask": [1, 1, 0, 1], "policy_versions": [4, 4, 5, 5]}
    write_tape(tmp_path / "run" / "trajectories" / "x.json", [step_of(1, metrics=metrics, extra={"gametape": ours})])
    tokens = client.get("/data/steps?run=run&rollout=x&first=0").json()["steps"][0]["tokens"]
    assert tokens["text"] == ["pack", "red", "#99", f"#{10**12}"]
    assert (tokens["logprob"], tokens["mask"]) == ([-0.5, -1.5, -0.25, 0.0], [True, True, False, True])
    assert tokens["version"] == [4, 4, 5, 5]
    assert client.get("/data/tape?run=run&rollout=x").json()["facts"] == [[2, 1, 4, 0, 0.5625, 5]]


def test_every_kind_of_trouble_is_a_bit_at_its_step(client: TestClient, tmp_path: Path) -> None:
    failed = {"observation": {"results": [{"content": "no", "extra": {"failed": True}}]}}
    event = {"extra": {"gametape": {"events": [{"kind": "constraint", "detail": "main is forbidden"}]}}}
    steps = [step_of(1, **failed), step_of(2, **event), step_of(3, extra={"gametape": {"compacted": True}}), step_of(4)]
    flags = [{"rule": "edited tests", "severity": "proven", "evidence": "x", "step": 4}, {"rule": "loose"}]
    extra = {"verdict": {"integrity": flags, "checks": [{"name": "tests", "score": 0.5, "detail": "d"}]}}
    write_tape(tmp_path / "run" / "trajectories" / "x.json", steps, extra=extra)
    told = client.get("/data/tape?run=run&rollout=x").json()
    assert [row[3] for row in told["facts"]] == [FAILED, EVENT, COMPACTION, FLAG]
    assert [mark["text"] for mark in told["loose_marks"]] == ["loose"]
    assert told["checks"] == [{"name": "tests", "score": 0.5, "detail": "d"}]
    marks = [step["marks"] for step in client.get("/data/steps?run=run&rollout=x&first=0").json()["steps"]]
    assert ["main is forbidden" in str(found) for found in marks] == [False, True, False, False]
    assert "edited tests" in marks[3][0]["text"]


def test_a_kept_rollout_has_what_the_update_saw_and_two_forks_at_its_target(client: TestClient, tmp_path: Path) -> None:
    metrics = {"completion_token_ids": [0, 2], "logprobs": [-0.5, -1.5]}
    turns = [{"said": "s", "calls": ["pack red"], "result": "ok", "failed": False}]
    other = [turns[0], turns[0] | {"calls": ["mark red"], "failed": True}]
    forks = [
        {"step": 1, "plain": {"passed": False, "turns": other}, "hinted": {"passed": True, "turns": turns, "more": 3}}
    ]
    readings = [
        {"step": 1, "learner": [-0.4, -1.6], "entropy": [0.1, 2.0]},
        {"step": 2, "learner": [1.0], "entropy": "x"},
    ]
    told = {"targets": [{"step": 1, "text": "t"}], "readings": readings, "forks": forks}
    steps = [step_of(1, metrics=metrics), step_of(2, metrics=metrics)]
    write_tape(tmp_path / "run" / "trajectories" / "x.json", steps, extra={"gametape": told})
    assert client.get("/data/tape?run=run&rollout=x").json()["read"] is True
    first, second = client.get("/data/steps?run=run&rollout=x&first=0").json()["steps"]
    assert (first["tokens"]["learner"], first["tokens"]["entropy"]) == ([-0.4, -1.6], [0.1, 2.0])
    assert (second["tokens"]["learner"], second["tokens"]["entropy"], second["forks"]) == ([], [], None)
    pair = first["forks"]
    assert (pair["parting"], pair["plain"]["turns"], pair["hinted"]["turns"]) == (1, other, turns)
    assert (pair["hinted"]["passed"], pair["hinted"]["more"]) == (True, 3)


def test_half_a_character_in_any_text_is_shown_as_a_question_mark(client: TestClient, tmp_path: Path) -> None:
    """JSON may hold what no encoding can."""
    half = "\ud83d"
    verdict = {"checks": [{"name": half, "detail": half}], "integrity": [{"rule": half, "severity": half}]}
    ours = {"policy_versions": [half], "events": [{"kind": half}]}
    metrics = {"completion_token_ids": [1], "logprobs": [-1.0]}
    steps = [step_of(1, message=half, metrics=metrics, extra={"gametape": ours})]
    extra = {"outcome": half, "task": half, "reason": half, "verdict": verdict}
    write_tape(tmp_path / "run" / "trajectories" / "x.json", steps, extra=extra)
    for address in ("/data/tape?run=run&rollout=x", "/data/steps?run=run&rollout=x&first=0", "/rollouts?run=run"):
        assert client.get(address).status_code == 200


def test_a_subagent_has_a_tape_of_its_own(client: TestClient, tmp_path: Path) -> None:
    called = {"schema_version": "ATIF-v1.7", "trajectory_id": "helper", "steps": [step_of(1, message="below")]}
    path = tmp_path / "run" / "trajectories" / "x.json"
    write_tape(path, [step_of(1), step_of(2)], subagent_trajectories=[called])
    address = "run=run&rollout=x&subagent=helper"
    assert client.get("/data/tape?run=run&rollout=x").json()["subagents"] == ["helper"]
    told = client.get(f"/data/tape?{address}").json()
    assert (told["steps"], told["title"]) == (1, "helper")
    assert client.get(f"/data/steps?{address}&first=0").json()["steps"][0]["text"] == "below"
    assert client.get("/data/tape?run=run&rollout=x&subagent=other").status_code == 404


def test_long_tapes_come_in_slices(client: TestClient, tmp_path: Path) -> None:
    write_tape(tmp_path / "run" / "trajectories" / "long.json", [step_of(number) for number in range(1, 1003)])
    address = "/data/steps?run=run&rollout=long&first="
    slice_ = client.get(f"{address}{50 * SLICE}").json()
    assert [step["step"] for step in slice_["steps"]] == [1001, 1002]
    for first in ("1", "-20", "x", "1020", "²", "9" * 40):
        assert client.get(address + first).status_code == 422, first


def test_texts_are_cut_and_have_no_control_characters(client: TestClient, tmp_path: Path) -> None:
    call = {"tool_call_id": "a", "function_name": "f\x1b", "arguments": {"k\u202e": ["y" * 50_000, {"z": "\x00"}]}}
    write_tape(tmp_path / "run" / "trajectories" / "x.json", [step_of(1, message="x" * 50_000, tool_calls=[call])])
    answer = client.get("/data/steps?run=run&rollout=x&first=0")
    assert len(answer.content) < 50_000
    assert "(30,000 more characters)" in answer.json()["steps"][0]["text"]
    assert not {"\\u001b", "\x1b", "\u202e", "\\u0000"} & {*answer.text}
    assert answer.json()["steps"][0]["calls"][0]["name"] == "f?"


@pytest.mark.parametrize("levels", [90, 150, 300, 500, 700, 850, 900, 930, 960, 990])
def test_what_is_nested_deep_is_cut_or_refused_in_one_line(client: TestClient, tmp_path: Path, levels: int) -> None:
    """The reader of JSON, what makes JSON and what counts the levels of calls each have a limit of their own."""
    deep = '{"a":' * levels + '"deepest"' + "}" * levels
    call = '{"tool_call_id": "1", "function_name": "f", "arguments": %s}' % deep  # noqa: UP031 - braces
    steps = f'[{{"step_id": 1, "source": "agent", "message": {deep}, "tool_calls": [{call}]}}]'
    extra = f'{{"reward": {deep}, "gametape": {{"targets": [{{"step": 1, "span": {deep}, "text": {deep}}}]}}}}'
    path = tmp_path / "run" / "trajectories" / "x.json"
    path.write_text(f'{{"schema_version": "ATIF-v1.7", "steps": {steps}, "extra": {extra}}}')
    for address in ("/data/tape?run=run&rollout=x", "/data/steps?run=run&rollout=x&first=0", "/rollouts?run=run"):
        answer = client.get(address)
        assert answer.status_code == 200 or "levels of nesting" in answer.text, address
    (tmp_path / "run" / "metrics.jsonl").write_text(f'{{"kind": "alarm", "advice": {deep}}}\n')
    (tmp_path / "run" / "config.toml").write_text(f"a = {'[' * levels}{']' * levels}\n")
    for address in ("/", "/run?run=run", "/data/series?run=run", "/data/runs"):
        assert client.get(address).status_code == 200, address
    write_export(tmp_path / "run", tmp_path / "out.html")


def test_arguments_of_a_few_hundred_levels_are_cut(client: TestClient, tmp_path: Path) -> None:
    deep: dict[str, object] = {"a": "deepest"}
    for _ in range(180):
        deep = {"a": deep}
    call = {"tool_call_id": "1", "function_name": "f", "arguments": deep}
    write_tape(tmp_path / "run" / "trajectories" / "x.json", [step_of(1, tool_calls=[call])])
    answer = client.get("/data/steps?run=run&rollout=x&first=0")
    assert (answer.status_code, "deepest" in answer.text) == (200, False)


@pytest.mark.parametrize("odd", [rb'{"rollout": "\q"}', b'{"rollout": "\xff"}', b'{"rollout": "x', b'"rollout": "\\'])
def test_a_line_of_a_target_that_cannot_be_read_hides_no_other(client: TestClient, tmp_path: Path, odd: bytes) -> None:
    log = tmp_path / "run" / "targets.jsonl"
    log.write_bytes(odd + b"\n" + log.read_bytes())
    for _ in range(2):
        steps = client.get("/data/steps?run=run&rollout=large.000&first=0").json()["steps"]
        assert [found["update"] for found in steps[1]["targets"]] == [3]


def test_a_running_tape_grows(tmp_path: Path) -> None:
    path = tmp_path / "attempt" / "trajectory.jsonl"
    path.parent.mkdir()
    path.write_bytes(header_line({"schema_version": "ATIF-v1.7"}) + step_line(step_of(1), 0))
    client = browser(open_site(tmp_path))
    first = client.get("/data/tape?run=attempt").json()
    assert (first["running"], first["steps"], first["outcome"]) == (True, 1, "running")
    with path.open("ab") as file:
        file.write(step_line(step_of(2), 1) + b'{"step_id": 3')
    assert client.get("/data/tape?run=attempt").json()["steps"] == 2
    assert len(client.get("/data/steps?run=attempt&first=0").json()["steps"]) == 2


def test_fields_of_unexpected_types_are_left_out(client: TestClient, tmp_path: Path) -> None:
    odd = {"metrics": {"completion_token_ids": [1, "x", None], "logprobs": [1, "x", None]}, "extra": {"gametape": 7}}
    hints = [{"step": 1, "span": "x", "gates": 3, "student_logprobs": [None]}, {"step": 1, "span": [5, 2]}, 3]
    extra = {"gametape": {"targets": hints, "advantage": "much"}, "verdict": {"integrity": 3}}
    write_tape(tmp_path / "run" / "trajectories" / "x.json", [step_of(1, **odd)], extra=extra)
    assert client.get("/data/tape?run=run&rollout=x").json()["advantage"] is None
    step = client.get("/data/steps?run=run&rollout=x&first=0").json()["steps"][0]
    assert step["tokens"]["text"] == ["mark", "?", "?"]
    assert len(step["targets"]) == 2
    assert json.dumps(step)
