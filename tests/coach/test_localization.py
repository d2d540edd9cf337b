"""Where a rollout went wrong is found from what it shows, at once or turns later; hints state the rule alone."""

import asyncio
import functools

import pytest

from gametape.coach.evidence import (
    AlarmEvidence,
    EpisodeEvidence,
    action_span,
    agent_turns,
    collect_evidence,
)
from gametape.coach.localization import locate_candidates
from gametape.core.environment import EpisodeScore
from gametape.core.step import Step
from gametape.core.verdict import FailedTest, Flag, TestCounts, Verdict
from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.engines.conversation import Call
from gametape.engines.scripted import ScriptedCall, ScriptedTurn
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert, perfect_expert
from gametape.tasks.worlds.plan import WorldAction
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.tools import family_tools
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate
from tests.patience import effort

from .obedient import TERSE

TOOLS = [tool.definition for tool in family_tools("files")]


def load_bearing(world):
    return [(turn, job) for turn, job in enumerate(world.plan.jobs, start=1) if job.marking]


def demonstrated(world, expert):
    return asyncio.run(demonstrate(world, expert, TERSE)).episode


@pytest.mark.parametrize("delay", [0, 1, 3, 64])
@pytest.mark.parametrize("family", ["files", "database", "build"])
def test_the_turn_that_broke_a_rule_is_found_however_late_it_is_told(family, delay):
    for seed in range(4):
        world = World(WorldSpec(seed=seed, family=family, horizon=12, load_bearing=3, error_delay=delay))
        wrong = load_bearing(world)[:2]
        candidates = locate_candidates(
            collect_evidence(demonstrated(world, ErrorAtTurnsExpert([turn for turn, _ in wrong]))), TERSE
        )
        assert [target.turn for target in candidates] == [turn for turn, _ in wrong]
        assert [target.text for target in candidates] == [job.hint() for _, job in wrong]
        assert [target.step for target in candidates] == [turn + 2 for turn, _ in wrong]
        assert all(target.source == "tool_error" and "error at" in target.evidence for target in candidates)
        late = [min(turn + delay, 12) + 2 for turn, _ in wrong]
        assert [target.noticed_step for target in candidates] == late


def test_a_perfect_rollout_has_no_target():
    world = World(WorldSpec(seed=3, load_bearing=2))
    assert locate_candidates(collect_evidence(demonstrated(world, perfect_expert)), TERSE) == []


def test_types_pool_what_breaks_the_same_rule():
    types = set()
    for seed in range(16):
        world = World(WorldSpec(seed=seed, family="files", rules=("sealed",), load_bearing=1))
        (turn, job), *_ = load_bearing(world)
        (target,) = locate_candidates(collect_evidence(demonstrated(world, ErrorAtTurnsExpert([turn]))), TERSE)
        assert job.item not in target.type.split()
        types.add(target.type)
    assert types == {f"a sealed {kind} takes patch" for kind in ("file", "folder", "link")}


def test_what_is_not_there_is_told_without_its_name():
    world = World(WorldSpec(seed=1, horizon=4, load_bearing=0, family="files"))

    def lost(_plan, job, turn, _rng):
        return WorldAction("write", ("f99", "red")) if turn == 2 else job.correct_action

    (target,) = locate_candidates(collect_evidence(asyncio.run(demonstrate(world, lost, byte_chat_format())).episode))
    assert (target.turn, target.text) == (2, "avoid : no such name")


def test_the_span_is_the_action_without_what_was_said_before_it():
    chat_format = byte_chat_format()
    scripted = ScriptedTurn(text="Let me think.", tool_calls=[ScriptedCall(name="write", arguments={"item": "f1"})])
    ids = [*scripted.to_text().encode(), *chat_format.stop_ids]
    step = turn(3, [("write", {"item": "f1"}, "ok", False)], ids=ids)
    (only,) = agent_turns([*opening(), step])
    start, end = action_span(only, chat_format)
    assert (end, chat_format.parse(ids[start:]).calls) == (len(ids), (Call("write", {"item": "f1"}),))
    assert 10 < start < len(ids) - 10


def turn(number, calls, notice="", events=(), ids=None):
    """A recorded turn: calls with their answers."""
    results = [
        {"source_call_id": f"c{at}", "content": text, **({"extra": {"failed": True}} if failed else {})}
        for at, (_, _, text, failed) in enumerate(calls)
    ]
    results += [{"content": notice}] if notice else []
    metrics = {"prompt_token_ids": [1], "completion_token_ids": ids} if ids else {}
    return Step.model_validate(
        {
            "step_id": number,
            "source": "agent",
            "message": "",
            "tool_calls": [
                {"tool_call_id": f"c{at}", "function_name": name, "arguments": arguments}
                for at, (name, arguments, _, _) in enumerate(calls)
            ],
            "observation": {"results": results},
            "metrics": metrics,
            "extra": {"gametape": {"events": [{"kind": kind, "detail": detail} for kind, detail in events]}},
        }
    )


def opening():
    return [Step(step_id=1, source="system", message="s"), Step(step_id=2, source="user", message="u")]


def evidence_of(*turns, tools=(), **more):
    return EpisodeEvidence(agent_turns([*opening(), *turns]), tools, **more)


WRITE = {
    "name": "write",
    "parameters": {
        "type": "object",
        "properties": {"path": {}, "content": {}, "mode": {}},
        "required": ["path", "content"],
    },
}


def only(candidates):
    (target,) = candidates
    return target.step, target.source, target.text


@pytest.mark.parametrize(
    ("kind", "detail", "calls", "source", "hint"),
    [
        ("unknown_tool", "There is no tool 'wipe'.", [("wipe", {})], "tool_error", "rule : the tools are write"),
        (
            "wrong_arguments",
            "write: argument 'content' is missing",
            [("write", {})],
            "tool_error",
            "rule : write takes path , content , if wanted mode",
        ),
        ("no_call", "You called no tool.", [], "tool_error", "rule : every turn calls one of the tools"),
        ("cut_off", "Your turn was cut off", [], "tool_error", "rule : say less and call one tool"),
        (
            "constraint",
            "forbidden by the path rule 'tests/**': writing tests/test_a.py",
            [("write", {"path": "tests/test_a.py"})],
            "policy",
            "rule : keep to what is allowed ; do without what the constraints forbid",
        ),
    ],
)
def test_what_the_harness_refuses_is_a_target(kind, detail, calls, source, hint):
    refused = turn(3, [(name, arguments, detail, True) for name, arguments in calls], events=[(kind, detail)])
    assert only(locate_candidates(evidence_of(refused, tools=[WRITE]))) == (3, source, hint)


@pytest.mark.parametrize("kind", ["engine", "sandbox_death", "tool_crash", "compaction", "after_finish"])
def test_a_fault_of_the_machinery_is_no_target(kind):
    assert (
        locate_candidates(
            evidence_of(turn(3, [("write", {}, "It died.", True)], events=[(kind, "It died.")]), tools=[WRITE])
        )
        == []
    )


def test_errors_of_other_tools_lose_their_paths_and_values():
    failed = turn(3, [("edit", {"path": "src/a.py"}, "edit: old does not occur in src/a.py", True)])
    assert only(locate_candidates(evidence_of(failed))) == (3, "tool_error", "avoid : old does not occur")
    links = "read: src/b.py is a symbolic link, and links are not followed here; name the file it points to"
    failed = turn(3, [("read", {"path": "src/b.py"}, links, True)])
    step, _, hint = only(locate_candidates(evidence_of(failed)))
    assert (step, "src" in hint) == (3, False)
    failed = turn(3, [("search", {"query": "a"}, "Not run: at most 8 calls in one turn.", True)])
    assert only(locate_candidates(evidence_of(failed)))[2] == "rule : at most 8 calls in one turn"


TRACEBACK = """Traceback (most recent call last):
  File "/workspace/tests/test_a.py", line 3, in test
    run()
  File "/workspace/src/a.py", line 1, in run
    return x
NameError: name 'x' is not defined
"""


def test_tracebacks_are_laid_to_the_turn_that_wrote_the_file():
    run = ("shell", {"command": "python -m pytest"}, TRACEBACK, False)
    wrote = ("write", {"path": "src/a.py", "content": "def run():\n    return x"}, "written", False)
    look = ("read", {"path": "src/a.py"}, "1 def run()", False)
    assert locate_candidates(evidence_of(turn(3, [run]))) == []  # what it was sent to look for
    (target,) = locate_candidates(evidence_of(turn(3, [wrote]), turn(4, [look]), turn(5, [run])))
    assert (target.step, target.noticed_step, target.source) == (3, 5, "traceback")
    assert (target.type, target.text) == ("NameError", "avoid : NameError : name is not defined")


def test_type_and_lint_messages_are_laid_to_the_turn_that_wrote_the_file():
    wrote = turn(3, [("write", {"path": "a.py", "content": "x"}, "written", False)])
    typed = 'a.py:3: error: Argument 1 to "run" has incompatible type "str"; expected "int"  [arg-type]'
    (target,) = locate_candidates(evidence_of(wrote, turn(4, [("check", {}, typed, False)])))
    assert (target.step, target.source, target.type) == (3, "types", "types arg-type")
    assert not {"run", "str", "int"} & set(target.text.split())
    linted = "a.py:1:8: F401 [*] `os` imported but unused\nb.py:1:1: F401 `re` imported but unused"
    (target,) = locate_candidates(evidence_of(wrote, turn(4, [("check", {}, linted, False)])))
    assert (target.step, target.source, target.text) == (3, "lint", "avoid : imported but unused")


def test_no_output_is_slow_to_read():
    """Each of these took time by the square of its length."""
    wrote = turn(3, [("write", {"path": "a.py", "content": "x"}, "written", False)])
    blank, wide = "\n" * 200_000, " " * 200_000
    for printed in (f"Traceback (most recent call last):{blank}NameError: x", f"a.py:1: error: x{wide}y"):
        evidence = evidence_of(wrote, turn(4, [("shell", {"command": "run"}, printed, False)]))
        assert effort(functools.partial(locate_candidates, evidence)) < 100


def test_the_same_call_with_the_same_result_is_of_no_use():
    search = ("search", {"query": "parse"}, "no match", False)
    look = ("read", {"path": "a.py"}, "text", False)
    candidates = locate_candidates(evidence_of(turn(3, [search]), turn(4, [search])))
    assert [(target.step, target.source) for target in candidates] == [(4, "repetition")]
    assert locate_candidates(evidence_of(turn(3, [search]), turn(4, [look]), turn(5, [search]))) == []
    candidates = locate_candidates(
        evidence_of(*(turn(at, [one]) for at, one in enumerate([search, look, search, look, search], start=3)))
    )
    assert [target.step for target in candidates] == [7]


def test_accusations_and_monitors_point_at_their_step_and_do_not_tell_the_rule():
    wrote = turn(3, [("write", {"path": "conftest.py", "content": "x"}, "written", False)])
    other = turn(4, [("read", {"path": "b.py"}, "text", False)])
    flags = [Flag(rule="runner.writes-startup", severity="proven", file="conftest.py", evidence="writes conftest.py")]
    step, source, hint = only(locate_candidates(evidence_of(wrote, other, flags=flags)))
    assert (step, source) == (3, "integrity")
    assert not {"runner.writes-startup", "conftest.py", "startup"} & set(hint.split())
    assert only(locate_candidates(evidence_of(wrote, other, alarms=[AlarmEvidence(4, "phrase", "0.9")])))[:2] == (
        4,
        "monitor",
    )


def test_failing_visible_tests_are_laid_to_the_turn_that_wrote_the_file():
    message = "src/a.py:2: in double\n    return y\nE   TypeError: double() missing 1 required positional argument: 'y'"
    verdict = Verdict(
        passed=False,
        reward=0.0,
        checks=[],
        integrity=[],
        signals=[],
        quarantined=False,
        stages=[],
        tests=TestCounts(expected=1, passed=0, failed=1),
        failures=[FailedTest(test="tests/test_a.py::test", result="failed", message=message)],
        mode="shared",
        assurance="strong",
        seconds=1.0,
        cached=False,
        policy_hash="0",
    )
    wrote = turn(3, [("write", {"path": "src/a.py", "content": "x"}, "written", False)])
    end = turn(4, [("finish", {}, "", False)])
    candidates = locate_candidates(evidence_of(wrote, end, score=EpisodeScore(False, 0.0, verdict=verdict)))
    assert [(target.step, target.source, target.type) for target in candidates] == [
        (3, "verifier", "TypeError"),
        (4, "verifier", "finished untested"),
    ]
    assert not {"double", "y"} & set(candidates[0].text.split())
