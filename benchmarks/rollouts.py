"""What the harness costs: many rollouts at once, against the bare time of their tool calls.

    python benchmarks/rollouts.py [--rollouts 256] [--calls 48]

Scripted policies, one sandbox each, `--calls` tool calls: shell commands, reads, writes, edits and searches in turn.
The bare run does the same calls in the same sandboxes, through the same tools, without a conversation, a record or a
checkpoint. What the harness adds is the difference of the two, per turn, on the same machine in the same minutes; the
runs are taken in turns, and the middle one counts. Started and ended sandboxes are in neither.

`with checkpoints` adds saving the file tree after each turn, `on disk` also a journal that is synced to the disk.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from rich.progress import Progress

from gametape.agent.agent_state import AgentState
from gametape.agent.limits import RolloutLimits
from gametape.agent.recorder import JournalRecorder, MemoryRecorder, StepRecorder
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.agent.tools import standard_tools
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.engines.scripted import ScriptedCall, ScriptedTurn, scripted_model
from gametape.record.journal import Journal
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.scheduler import RewindableWorkspace, SandboxScheduler
from gametape.sandbox.snapshots.store import SnapshotStore

RESULTS = Path(__file__).parent / "results" / "rollouts.json"
SOURCE = "".join(f"def function_{n}(x):\n    return x + {n}\n\n\n" for n in range(40))
CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("shell", {"command": "ls -l"}),
    ("read", {"path": "module.py", "line": 20, "count": 20}),
    ("edit", {"path": "module.py", "old": "return x + 3\n", "new": "return x +  3\n"}),
    ("search", {"pattern": "def function_1"}),
    ("write", {"path": "notes.txt", "content": "one\ntwo\nthree\n"}),
    ("edit", {"path": "module.py", "old": "return x +  3\n", "new": "return x + 3\n"}),
)
Kind = str
KINDS: Sequence[Kind] = ("bare", "harness", "with checkpoints", "on disk")


class NoCheckpoints:
    """An environment that saves nothing, to tell the cost of checkpoints from that of the rest."""

    def __init__(self, inner: RewindableWorkspace) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def snapshot(self) -> str:
        return "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=256)
    parser.add_argument("--calls", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    seconds: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    with Progress(transient=True) as progress:
        bar = progress.add_task("rounds", total=chosen.rounds * len(KINDS))
        for number in range(chosen.rounds):
            for kind in KINDS[number % 2 :: 1] + KINDS[: number % 2]:
                seconds[kind].append(asyncio.run(measured(kind, chosen.rollouts, chosen.calls)))
                progress.advance(bar)
    turns = chosen.rollouts * chosen.calls
    bare = statistics.median(seconds["bare"])
    rows = {
        kind: {
            "seconds": statistics.median(taken),
            "ms_per_turn": 1000 * statistics.median(taken) / turns,
            "ms_over_bare": 1000 * (statistics.median(taken) - bare) / turns,
            "ratio": statistics.median(taken) / bare,
        }
        for kind, taken in seconds.items()
    }
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    RESULTS.write_text(json.dumps({"machine": machine, **vars(chosen), "rows": rows}, indent=1) + "\n")
    print(f"{chosen.rollouts} rollouts of {chosen.calls} calls on {os.cpu_count()} cores")
    for kind, row in rows.items():
        print(
            f"{kind:18} {row['ms_per_turn']:7.2f} ms a turn  {row['ms_over_bare']:+6.2f} over bare  x{row['ratio']:.2f}"
        )


async def measured(kind: Kind, rollouts: int, calls: int) -> float:
    turns = [_turn(number) for number in range(calls)]
    with tempfile.TemporaryDirectory(prefix="gametape-rollouts-") as scratch:
        root = Path(scratch)
        (root / "start").mkdir()
        (root / "start/module.py").write_text(SOURCE)
        with SnapshotStore(root / "store") as store:
            start = store.import_tree(root / "start")
            async with SandboxScheduler(store=store, durably=kind == "on disk") as scheduler:
                opened = await asyncio.gather(*(scheduler.open_snapshot(start, SandboxSpec()) for _ in range(rollouts)))
                runs = [await _prepared(kind, workspace, turns, root, at) for at, workspace in enumerate(opened)]
                began = time.perf_counter()
                await asyncio.gather(*(run() for run in runs))
                return time.perf_counter() - began


async def _prepared(
    kind: Kind, workspace: RewindableWorkspace, turns: Sequence[ScriptedTurn], root: Path, number: int
) -> Callable[[], Awaitable[Any]]:
    if kind == "bare":
        return lambda: _bare(workspace, turns)
    recorder: StepRecorder = MemoryRecorder()
    if kind == "on disk":
        header = {"schema_version": ATIF_VERSION, "agent": {"name": "gametape", "version": "0"}, "steps": []}
        recorder = JournalRecorder(Journal.create(root / f"{number}.jsonl", Trajectory.model_validate(header)))
    model = scripted_model("scripted", turns)
    config = RolloutConfig(
        model=model, make_tools=standard_tools, name=str(number), limits=RolloutLimits(turns=len(turns))
    )
    checkpointed: Any = workspace if kind in ("with checkpoints", "on disk") else NoCheckpoints(workspace)
    rollout = await Rollout.begin(config, checkpointed, recorder, "You are an agent.", "Do as the script says.")
    return rollout.run


async def _bare(workspace: RewindableWorkspace, turns: Sequence[ScriptedTurn]) -> None:
    tools = {tool.name: tool for tool in standard_tools(AgentState())}
    for turn in turns:
        for call in turn.tool_calls:
            result = await tools[call.name].call(call.arguments, workspace)
            if result.failed:
                sys.exit(f"{call.name} failed: {result.content}")


def _turn(number: int) -> ScriptedTurn:
    name, arguments = CALLS[number % len(CALLS)]
    return ScriptedTurn(text=f"Step {number}.", tool_calls=[ScriptedCall(name=name, arguments=arguments)])


if __name__ == "__main__":
    main()
