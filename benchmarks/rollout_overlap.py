"""What rollouts with tools cost beside decoding alone: 64 and 256 rollouts of 4 turns, a tool of 0.1 s after each.

    python benchmarks/rollout_overlap.py [--rollouts 64 256] [--parallel 16] [--lockstep 64] [--layers 4 --width 192]

The sources, the worker, the agent's loop and the engine are those of `gametape train`; the policy is small and has
random weights, every turn has the same number of tokens, and every turn is read as a call of the one tool. The tool
sleeps for 0.02 to 0.18 s and takes no core; `--parallel` of them run at a time, as sandboxes do under
`rollouts.sandboxes`. `decode` is the same rollouts with a tool of no time. The limit is the longer of that and of all
tool time divided by the tools that may run at a time; `ratio` is what the whole took over the limit. Both are the best
of `--rounds`, taken in turns. `cpu_ratio` is processor time with tools over that without, which others on the machine
change less. Lockstep, which waits for each tool, is played once for the counts that `--lockstep` names.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gametape.agent.state_environment import StateEnvironment
from gametape.core.config import RunConfig, TinyConfig
from gametape.core.messages import ToolResult
from gametape.core.protocols import JsonObject, Tool, Workspace
from gametape.engines.chat_formats.protocol import ParsedTurn
from gametape.engines.conversation import Call
from gametape.train.activity import ActivityClock, ActivityLedger
from gametape.train.policy import WordLanguage, create_tiny_policy, load_policy
from gametape.train.prompts import EnvironmentDataset
from gametape.train.rollouts import PromptRequest
from gametape.train.sources import ConcurrentSource, LockstepSource, NullAnnotator, RolloutWorker

RESULTS = Path(__file__).parent / "results" / "rollout_overlap.json"
GROUP = 8
TURNS = 4
WORDS = [f"word{number}" for number in range(500)]


class EveryTurnCalls:
    """A chat format in which every turn, whatever it says, is a call of the tool; no token ends a turn."""

    stop_ids: Sequence[int] = ()

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def parse(self, completion_ids: Sequence[int]) -> ParsedTurn:  # noqa: ARG002
        return ParsedTurn(text="", calls=(Call("work", {}),))


@dataclass
class Work(Tool):
    """Sleeps for a while, when there is room."""

    seconds: random.Random | None
    room: asyncio.Semaphore
    name: str = "work"

    @property
    def definition(self) -> JsonObject:
        return {"name": self.name, "description": "work", "parameters": {"type": "object", "properties": {}}}

    async def call(self, arguments: JsonObject, workspace: Workspace) -> ToolResult:  # noqa: ARG002
        if self.seconds is not None:
            async with self.room:
                await asyncio.sleep(self.seconds.uniform(0.02, 0.18))
        return ToolResult(content=" ".join(WORDS[:8]))


class Office(StateEnvironment[dict[str, int]]):
    name = "office"
    user_prompt = " ".join(WORDS[:64])
    max_turns = TURNS

    def __init__(self, tool: Work) -> None:
        self._tool = tool

    def initial_state(self) -> dict[str, int]:
        return {}

    def tools(self) -> Sequence[Tool]:
        return [self._tool]

    def score_state(self, state: dict[str, int]) -> float:  # noqa: ARG002
        return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--lockstep", type=int, nargs="*", default=[64])
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gametape-overlap-") as scratch:
        shape = TinyConfig(layers=chosen.layers, width=chosen.width, window=1024)
        create_tiny_policy(Path(scratch) / "model", shape, 0, WordLanguage(WORDS, {"work": []}))
        rows = [measure(Path(scratch) / "model", count, chosen) for count in chosen.rollouts]
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    RESULTS.write_text(json.dumps({"machine": machine, **vars(chosen), "rows": rows}, indent=1) + "\n")
    print(json.dumps(rows, indent=1))


def measure(model: Path, rollouts: int, chosen: argparse.Namespace) -> dict[str, Any]:
    def played(**options: Any) -> dict[str, Any]:
        return asyncio.run(play(model, rollouts, chosen, **options))

    pairs = [(played(with_tools=False), played()) for _ in range(chosen.rounds)]
    decode, whole = (min(runs, key=lambda run: float(run["seconds"])) for runs in zip(*pairs, strict=True))
    tools = whole["tool_seconds"] / min(chosen.parallel, rollouts)
    limit = max(decode["seconds"], tools)
    row: dict[str, Any] = {
        "rollouts": rollouts,
        "decode_seconds": round(decode["seconds"], 2),
        "tool_seconds_over_parallel": round(tools, 2),
        "seconds": round(whole["seconds"], 2),
        "cpu_seconds": {"decode": round(decode["cpu"], 2), "whole": round(whole["cpu"], 2)},
        "ratio": round(whole["seconds"] / limit, 3),
        "cpu_ratio": round(min(whole["cpu"] for _, whole in pairs) / min(decode["cpu"] for decode, _ in pairs), 3),
        "time": whole["time"],
    }
    if rollouts in chosen.lockstep:
        row["lockstep_seconds"] = round(played(lockstep=True)["seconds"], 2)
    print(row, flush=True)
    return row


async def play(
    model: Path, rollouts: int, chosen: argparse.Namespace, with_tools: bool = True, lockstep: bool = False
) -> dict[str, Any]:
    """Order all groups and take them as they finish."""
    rl = {"group_size": GROUP, "turns": TURNS, "turn_tokens": chosen.tokens, "reproducible": lockstep}
    config = RunConfig.model_validate({"arm": "rlvr", "tasks": "office", "rl": rl})
    clock, seconds = ActivityClock(), random.Random(0)
    policy = load_policy(model)
    sampler = policy.sampler(threaded=not lockstep, clock=clock)
    sampler = replace(sampler, chat_format=EveryTurnCalls(sampler.chat_format))
    tool = Work(seconds if with_tools else None, asyncio.Semaphore(chosen.parallel))
    worker = RolloutWorker(sampler, EnvironmentDataset([Office(tool)]), config, clock)
    source = (LockstepSource if lockstep else ConcurrentSource)(worker, NullAnnotator())
    began, spent, ledger = time.perf_counter(), time.process_time(), ActivityLedger(clock.now())
    for number in range(rollouts // GROUP):
        source.order(PromptRequest(number, 0, number))
    groups = [await source.take() for _ in range(rollouts // GROUP)]
    took, spent = time.perf_counter() - began, time.process_time() - spent
    report = clock.take()
    ledger.add(report)
    await source.close()
    assert all(rollout.turns == TURNS for group in groups for rollout in group.rollouts)
    replayed = random.Random(0)
    slept = sum(replayed.uniform(0.02, 0.18) for _ in range(rollouts * TURNS)) if with_tools else 0.0
    return {"seconds": took, "cpu": spent, "tool_seconds": slept, "time": ledger.close_window(report.until).shares}


if __name__ == "__main__":
    main()
