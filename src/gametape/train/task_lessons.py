"""What a warm start learns from in sandboxes: a scripted expert that writes every file of a solution, runs its tests
and finishes, with faults planted on the way; and single turns that follow a made-up request, so that hints are read.

No hint says what would have kept the expert from a fault: that is what training is to teach. Every demonstration is
played in the task's own sandbox and scored by its own verifier.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.agent.task_environment import TaskEnvironment
from gametape.core.config import WarmStartConfig
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.conversation import Call
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.keeper_client import SandboxError
from gametape.train.demonstrations import hinted_call, scripted_policy
from gametape.train.lessons import Lesson

Fault = Literal["unknown tool", "wrong argument", "untested", "wrong file", "wrong answer", "early finish"]
FAULTS: tuple[Fault, ...] = ("unknown tool", "wrong argument", "untested", "wrong file", "wrong answer", "early finish")
_HINTED = 2
"""Turns of a demonstration that are also trained after a made-up request."""


@dataclass(frozen=True)
class PlannedCall:
    """What the expert does in a turn, and which fault it is."""

    call: Call
    fault: Fault | None = None


def plan_work(task: LoadedTask, faults: Sequence[Fault | None]) -> list[PlannedCall]:
    """One fault, or none, for each file of the solution. `untested` and `early finish` leave out what should follow;
    after the others comes what is right."""
    if task.reference is None:
        raise BadInput(f"{task.task.name}: has no solution, so that no expert can show it")
    written = [path for path, content in task.reference.files.items() if task.start.files.get(path) != content]
    tests = sorted({test.partition("::")[0] for test in task.task.tests.visible})
    turns: list[PlannedCall] = []
    for number, (path, fault) in enumerate(zip(written, faults, strict=True), start=1):
        code, start = task.reference.text(path), task.start.text(path) if path in task.start else ""
        own = [test for test in tests if _stem(path) in test] or tests
        check = Call("shell", {"command": f"python -m pytest -q {shlex.join(own)}"})
        if fault == "unknown tool":
            turns.append(PlannedCall(Call("run_tests", {"path": own[0]}), fault))
        if fault == "wrong argument":
            turns.append(PlannedCall(Call("write", {"file": path, "content": code}), fault))
        if fault == "wrong file":
            turns += [PlannedCall(Call("write", {"path": f"new_{path}", "content": code}), fault), PlannedCall(check)]
        if fault == "wrong answer":
            turns += [PlannedCall(Call("write", {"path": path, "content": start}), fault), PlannedCall(check)]
        turns.append(PlannedCall(Call("write", {"path": path, "content": code})))
        turns += [] if fault == "untested" else [PlannedCall(check)]
        if fault == "early finish" and number < len(written):
            return [*turns, PlannedCall(_finish(), fault)]
    return [*turns, PlannedCall(_finish())]


def draw_faults(task: LoadedTask, share: float, rng: Random) -> list[Fault | None]:
    """For each file of the solution, with this probability one of the faults."""
    assert task.reference is not None
    files = [path for path, content in task.reference.files.items() if task.start.files.get(path) != content]
    return [rng.choice(FAULTS) if rng.random() < share else None for _ in files]


async def task_lesson(
    environment: TaskEnvironment, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random
) -> Lesson:
    """A demonstration, with its verdict, and some of its turns once more after a request that they obey."""
    planned = plan_work(environment.task, draw_faults(environment.task, warm.fault_share, rng))
    episode = await play(environment, [turn.call for turn in planned], chat_format)
    hinted = _requested_turns(episode, environment.task, chat_format, rng) if rng.random() < warm.hint_share else []
    return Lesson(episode, [*split_segments(episode.steps), *hinted])


async def play(environment: TaskEnvironment, calls: Sequence[Call], chat_format: ChatFormat) -> Episode:
    """These calls, in the environment's own sandbox, to a verdict."""
    model = scripted_policy([chat_format.encode_call(call) for call in calls], chat_format)
    limits = RolloutLimits(turns=len(calls))
    return await run_episode(environment, rollout_config_for(environment, model, Sampling(), limits), SandboxError)


def _requested_turns(episode: Episode, task: LoadedTask, chat_format: ChatFormat, rng: Random) -> list[TokenSegment]:
    """Before some turns, a request to look at a file first, made up each time, and the call that does it."""
    turns = [tokens for step in episode.steps if step.source == "agent" and (tokens := step.tokens())]
    paths = sorted(task.start)
    found = []
    for turn in rng.sample(turns, min(_HINTED, len(turns))):
        path = rng.choice(paths)
        wanted = rng.choice((Call("read", {"path": path}), Call("shell", {"command": f"cat {shlex.quote(path)}"})))
        said = f"Reminder: look at {path} with `{wanted.name}` before anything else."
        found.append(hinted_call(turn, chat_format, said, wanted))
    return found


def _finish() -> Call:
    return Call("finish", {"summary": "It is written and the tests pass.", "confidence": 0.9})


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".py")
