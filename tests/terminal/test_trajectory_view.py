"""A trajectory on the terminal: whoever wrote it and whatever is in it, nothing of it commands the terminal."""

import io
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from gametape.studio.report import write_report
from gametape.studio.run_place import RunPlace
from gametape.studio.trajectory_view import TrajectoryView, find_subagent, read_trajectory
from gametape.terminal.step_lines import Fold
from gametape.terminal.trajectory_view import show_table, show_trajectory

from ..record.test_trajectory_stream import EXAMPLE, document, step

ATTACK = "\x1b]0;owned\x07[/red]\u202e\x9b31m"


def shown(view: TrajectoryView, fold: Fold | None = None) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False, markup=False)
    show_trajectory(console, view, fold or Fold(), wrap=False)
    show_table(console, [view], "")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def read(path: Path, made: dict[str, Any]) -> TrajectoryView:
    path.write_text(json.dumps(made))
    return read_trajectory(path)


def test_another_makers_file_is_shown_with_all_it_has() -> None:
    text = shown(read_trajectory(EXAMPLE))
    for part in (
        "The calendar in /app counts days wrongly",
        "terminus-2 2.0.0  ATIF-v1.6",
        "4 turns  6,544 tokens read, 4,304 cached, 599 written  $0.0286  35.0 s",
        "outcome  not recorded",
        "[image: image/png images/calendar.png]",
        "| reasoning, 24 words (--reasoning)",
        "> bash_command keystrokes=git diff duration=0.5",
        "... 10 more lines (--full)",
        "subagent trajectory.summarization-1-summary.json",
    ):
        assert part in text
    assert "The failing tests will tell me" not in text
    whole = shown(read_trajectory(EXAMPLE), Fold(None, None, reasoning=True))
    assert "| The failing tests will tell me" in whole
    assert "more lines" not in whole
    assert "test_across_years" in whole


def test_what_happened_at_a_turn_is_marked_there(tmp_path: Path) -> None:
    ours = {
        "finish": "length",
        "events": [{"kind": "breaker", "rung": "nudge", "detail": "nudge: three times the same"}],
    }
    call = {
        "tool_call_id": "c",
        "function_name": "edit",
        "arguments": {"path": "a.py", "old": "x = 1\n", "new": "x = 2\n"},
    }
    results = [{"source_call_id": "c", "content": "no such file", "extra": {"failed": True}}]
    steps = [
        step(1, source="user", message="Go on."),
        step(2, tool_calls=[call], observation={"results": results}, extra={"gametape": ours}),
    ]
    extra = {
        "outcome": "failed",
        "gametape": {"targets": [{"step": 2, "text": "read it first", "used": True}]},
        "verdict": {
            "passed": False,
            "reward": -1.0,
            "tests": {"passed": 1, "expected": 3},
            "integrity": [
                {"rule": "tests.edited", "severity": "proven", "step": 2, "evidence": "a test is gone"},
                {"rule": "exit.hard-exit", "severity": "suspect", "file": "a.py", "line": 3, "evidence": "os._exit"},
            ],
        },
    }
    lines = shown(read(tmp_path / "t.json", document(steps, extra=extra))).splitlines()
    for line in (
        "      -x = 1",
        "      +x = 2",
        "    no such file",
        "  [hint] read it first",
        "  [proven] tests.edited a test is gone",
        "  [nudge] nudge: three times the same",
        "  [cut off] the reply reached the limit of its tokens",
        "verdict  not passed  reward -1.00  1 of 3 tests",
        "  [suspect] exit.hard-exit a.py:3 os._exit",
    ):
        assert line in lines


def test_subagents_are_listed_and_found(tmp_path: Path) -> None:
    inner = document([step(1, message="inside")], trajectory_id="sub")
    ref = {"results": [{"subagent_trajectory_ref": [{"trajectory_id": "sub"}]}]}
    view = read(tmp_path / "t.json", document([step(1, observation=ref)], subagent_trajectories=[inner]))
    assert "subagent sub  a 1  1 turn" in shown(view)
    assert "inside" in shown(find_subagent(view, "sub"))


def test_nothing_that_a_model_wrote_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    call = {"tool_call_id": ATTACK, "function_name": ATTACK, "arguments": {ATTACK: ATTACK, "b": f"{ATTACK}\n{ATTACK}"}}
    made = step(
        1,
        message=[{"type": ATTACK, "source": {"path": ATTACK}}, ATTACK],
        reasoning_content=ATTACK,
        model_name=ATTACK,
        timestamp=ATTACK,
        tool_calls=[call],
        observation={"results": [{"source_call_id": ATTACK, "content": f"--- {ATTACK}\n+++ b\n+{ATTACK}"}]},
        extra={"gametape": {"events": [{"kind": ATTACK, "detail": ATTACK}]}},
    )
    agent = {"name": ATTACK, "version": ATTACK, "model_name": ATTACK}
    extra = {"task": ATTACK, "outcome": ATTACK, "reason": ATTACK + "!"}
    view = read(tmp_path / "t.json", document([made], extra=extra) | {"agent": agent, "trajectory_id": ATTACK})
    text = shown(view, Fold(None, None, reasoning=True))
    assert text.count("owned") > 15
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.just("\ud800\x1b"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
_RESULT = st.dictionaries(st.sampled_from(["source_call_id", "content", "extra", "subagent_trajectory_ref"]), _JSON)
_STEP = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("step_id", "source", "message", "reasoning_content", "timestamp", "model_name", "is_copied_context"), _JSON
    )
    | {
        "tool_calls": _JSON
        | st.lists(st.dictionaries(st.sampled_from(["tool_call_id", "function_name", "arguments"]), _JSON)),
        "observation": _JSON | st.fixed_dictionaries({"results": _JSON | st.lists(_RESULT, max_size=2)}),
        "metrics": _JSON
        | st.dictionaries(st.sampled_from(["prompt_tokens", "completion_token_ids", "cost_usd"]), _JSON),
        "extra": _JSON
        | st.fixed_dictionaries(
            {"gametape": st.dictionaries(st.sampled_from(["events", "finish", "after_attempt", "compacted"]), _JSON)}
        ),
    },
)
_EXTRA = st.dictionaries(st.sampled_from(["task", "outcome", "reason", "verdict", "goal", "gametape"]), _JSON)


@settings(max_examples=60, deadline=None, database=None)
@given(steps=st.lists(_STEP, max_size=4), extra=_JSON | _EXTRA, agent=_JSON, subagents=_JSON, final=_JSON)
def test_a_step_of_any_shape_is_shown_and_reported(
    tmp_path_factory: Any, steps: Any, extra: Any, agent: Any, subagents: Any, final: Any
) -> None:
    directory = tmp_path_factory.mktemp("any")
    path = directory / "t.json"
    made = document(steps, extra=extra, final_metrics=final, subagent_trajectories=subagents) | {"agent": agent}
    view = read(path, made)
    json.dumps(view.to_dict(), allow_nan=False)
    assert "\x1b" not in shown(view, Fold(None, None, reasoning=True))
    page = write_report([RunPlace("trajectory", path)], directory / "r.html").path.read_text()
    assert "\x1b" not in page
