"""What a turn costs in a thread of thousands of turns, and in a rollout of thousands of turns in training.

Run it with `python benchmarks/long_threads.py`. A scripted policy whose turns go through token ids is asked, takes
nineteen turns with a command, and answers. The first and the last messages of the thread run in a real sandbox; the
turns between them are recorded as they would have been, five hundred to a message and without running their commands
(`--live` runs them too). The
model is told a window of 32,768 tokens, so that contexts are compacted as with any model. Every stretch, the resume and
the verbs have a process of their own, so that their memory can be compared. A turn is given in seconds and, for busy
machines, in seconds of the CPU time of the process, without that of the sandbox. `resume` is the time from a closed
thread to the moment at which its model could be asked. `settled` is a stretch after the first five hundred turns: from
there on a resume shows the monitors as many steps as it ever will.
`--save` writes the figures to benchmarks/results/long_threads.json.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gametape.agent.limits import RolloutLimits
from gametape.agent.recorder import MemoryRecorder, StepRecorder
from gametape.agent.replay import checkpoint_at
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.agent.tools import standard_tools
from gametape.core.errors import BadInput
from gametape.core.messages import CommandResult
from gametape.core.token_segments import split_segments
from gametape.desk.database import connect, drafts
from gametape.desk.delivery import DeliveryChannel
from gametape.desk.outbox import Outbox
from gametape.desk.threads import session
from gametape.desk.threads.lifecycle import create_thread
from gametape.desk.threads.session import ThreadMessage, ThreadSession
from gametape.desk.threads.thread import Thread, ThreadDirectory, new_thread_id, thread_directory
from gametape.engines.scripted import ScriptedCall, ScriptedTurn, scripted_model
from gametape.sandbox.policy import WORKSPACE

RESULTS = Path(__file__).parent / "results" / "long_threads.json"
SAY_TURNS, MIDDLE_TURNS = 20, 500
WINDOW = 32_768
_SYLLABLES = ("ba", "cor", "din", "fel", "gu", "har", "jo", "kes", "lum", "mi", "nor", "pra", "quo", "ri", "sul", "tev")
_COMMANDS = ("echo {} > {}; cat {}", "echo {} | rev | tee {}; wc -c {}", "printf '%s\\n' {} | sort > {}; head -3 {}")


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4)))


def turn_text(number: int, answers: bool) -> ScriptedTurn:
    """A turn in its own words, about its own file: a policy that repeats itself would be stopped by the breaker."""
    chance = random.Random(number)
    said = " ".join(_word(chance) for _ in range(chance.randint(8, 24)))
    if answers:
        return ScriptedTurn(text=f"{said}.")
    words = " ".join(_word(chance) for _ in range(chance.randint(4, 40)))
    command = chance.choice(_COMMANDS).format(words, f"{_word(chance)}.txt", f"{_word(chance)}.txt *")
    return ScriptedTurn(text=said, tool_calls=[ScriptedCall(name="shell", arguments={"command": command})])


@dataclass(frozen=True)
class Turns(Sequence[ScriptedTurn]):
    """As many turns as anybody asks for; the last of so many is an answer."""

    first: int = 0
    each: int = SAY_TURNS

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, number: Any) -> Any:
        return turn_text(number, (number - self.first) % self.each == self.each - 1)


@dataclass(frozen=True)
class _Output:
    stdout: str
    exit_code: int = 0
    stderr: str = ""
    killed_by: str | None = None
    directory: str = WORKSPACE
    shell_restarted: bool = False
    cpu_seconds: float = 0.0


class UnrunWorkspace:
    """A workspace in which no command runs: the output is words, and the files stay those of one snapshot."""

    def __init__(self, snapshot: str) -> None:
        self._snapshot = snapshot

    async def shell(self, command: str, wall_seconds: float | None = None) -> _Output:  # noqa: ARG002
        chance = random.Random(command)
        return _Output(" ".join(_word(chance) for _ in range(chance.randint(5, 40))))

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult:  # noqa: ARG002
        return CommandResult(exit_code=1, stdout="", stderr="")

    async def get(self, path: str) -> bytes:
        raise BadInput(f"{path}: not here")

    async def snapshot(self) -> str:
        return self._snapshot

    async def restore(self, snapshot: str) -> None:
        pass

    async def close(self) -> None:
        pass


@asynccontextmanager
async def _unrun(_store: Any, recorder: StepRecorder, _spec: Any) -> AsyncIterator[UnrunWorkspace]:
    yield UnrunWorkspace(checkpoint_at(recorder.steps)[0])


def begin(home: Path) -> ThreadDirectory:
    script = home / "script.jsonl"
    script.write_text(json.dumps(turn_text(0, answers=True).model_dump()) + "\n")
    name = new_thread_id()
    thread = Thread(
        thread_id=name, model=f"scripted:{script}", created=time.time(), vault=str(home / "vault"), store=name
    )
    return asyncio.run(create_thread(home, thread))


def open_session(home: Path, name: str, turns: Turns) -> ThreadSession:
    """A session whose model has all turns, and an ordinary window."""
    engine = connect(f"sqlite:///{home / 'drafts.sqlite'}")
    drafts.metadata.create_all(engine)
    directory = thread_directory(home, name)
    session.open_model = lambda *_: scripted_model(directory.read().model, turns, WINDOW)  # type: ignore[assignment]
    return ThreadSession(home, directory, Outbox(engine, DeliveryChannel(), home / "outbox"))


async def _never() -> bool:
    return False


def say(home: Path, name: str, first: int, count: int, each: int, live: bool) -> dict[str, Any]:
    """Seconds of each of `count` messages of so many turns each, after the `first` turns."""
    opened = open_session(home, name, Turns(first, each))
    if not live:
        session.open_workspace = _unrun  # type: ignore[assignment]
    wall, cpu = [], []
    for number in range(1, count + 1):
        message = ThreadMessage(f"Go on, part {number}.", f"say-{first}-{number}", max_turns=2 * each)
        began, used = time.perf_counter(), time.process_time()
        result = asyncio.run(opened.send(message, _never))
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
        assert (result.ended, result.turns) == ("answered", first + number * each), result
    return {"wall": wall, "cpu": cpu, "megabytes": _peak()}


class _Ready(Exception):
    """The model could be asked now."""


def resume(home: Path, name: str) -> dict[str, Any]:
    """Seconds until the thread could ask its model, after it was closed."""

    async def asked(_rollout: Rollout) -> Any:
        raise _Ready

    Rollout.turn = asked  # type: ignore[method-assign]
    opened = open_session(home, name, Turns())
    began, used = time.perf_counter(), time.process_time()
    try:
        asyncio.run(opened.send(ThreadMessage("Still there?", "resume"), _never))
    except _Ready:
        wall, cpu = time.perf_counter() - began, time.process_time() - used
        return {"wall": round(wall, 3), "cpu": round(cpu, 3), "megabytes": _peak()}
    raise AssertionError("the model was not asked")


def rollout(turns: int) -> dict[str, Any]:
    """A rollout in memory, as in training: CPU seconds of each turn."""

    async def play() -> list[float]:
        model = scripted_model("scripted", Turns(0, sys.maxsize), WINDOW)
        limits = RolloutLimits(turns=turns + 1, turn_tokens=1024, wall_seconds=None)
        config = RolloutConfig(model, standard_tools, limits=limits)
        workspace: Any = UnrunWorkspace("snapshot")
        played = await Rollout.begin(config, workspace, MemoryRecorder(), "You are an agent.", "Go on.")
        cpu = []
        for _ in range(turns):
            used = time.process_time()
            await played.turn()
            cpu.append(time.process_time() - used)
        assert len(split_segments(played.recorder.steps)) > 0
        return cpu

    return {"cpu": asyncio.run(play()), "megabytes": _peak()}


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def in_process(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def verb(home: Path, *words: str) -> float:
    """CPU seconds of a command in a process of its own, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(Path(sys.executable).with_name("gametape")), "thread", *words, "--home", str(home), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3)


def thread_row(turns: int, stretch: int, live: bool) -> dict[str, Any]:
    """A thread of so many turns; the first and the last `stretch` messages are measured."""
    with tempfile.TemporaryDirectory(prefix="gametape-long-") as scratch:
        home = Path(scratch)
        directory = begin(home)
        name = directory.root.name
        row: dict[str, Any] = {"what": "thread"}
        at, between = 0, (turns - 3 * stretch * SAY_TURNS) // MIDDLE_TURNS
        for stage in ("start", "", "settled", "", "end"):
            filled = 1 if at <= stretch * SAY_TURNS else between - 1
            count, each = (stretch, SAY_TURNS) if stage else (filled, MIDDLE_TURNS)
            how = "live" if live or stage else "recorded"
            told = in_process("say", str(home), name, str(at), str(count), str(each), how)
            at += count * each
            if stage:
                row |= {f"{stage}_turn_cpu_ms": _turn_ms(told["cpu"]), f"{stage}_turn_ms": _turn_ms(told["wall"])}
                row |= {f"{stage}_mb": told["megabytes"], f"{stage}_list_cpu_s": verb(home, "list")}
                row[f"{stage}_show_cpu_s"] = verb(home, "show", name, "--last", "2")
        row["turns"] = at
        row["record_mb"] = round(directory.journal.stat().st_size / 1e6, 2)
        resumed = in_process("resume", str(home), name)
        row |= {"resume_s": resumed["wall"], "resume_cpu_s": resumed["cpu"], "resume_mb": resumed["megabytes"]}
        for stage in ("start", "settled"):
            row[f"end_to_{stage}"] = round(row["end_turn_ms"] / row[f"{stage}_turn_ms"], 2)
            row[f"end_to_{stage}_cpu"] = round(row["end_turn_cpu_ms"] / row[f"{stage}_turn_cpu_ms"], 2)
        return row


def rollout_row(turns: int) -> dict[str, Any]:
    """A rollout of so many turns: its first and its last fifth, and its memory beside that of a fifth of it."""
    fifth = turns // 5
    whole, short = (in_process("rollout", str(count)) for count in (turns, fifth))
    ends = {"start": whole["cpu"][:fifth], "end": whole["cpu"][-fifth:]}
    row = {f"{stage}_turn_cpu_ms": round(statistics.fmean(cpu) * 1000, 3) for stage, cpu in ends.items()}
    row |= {"start_mb": short["megabytes"], "end_mb": whole["megabytes"]}
    return {
        "what": "rollout",
        "turns": turns,
        **row,
        "end_to_start_cpu": round(row["end_turn_cpu_ms"] / row["start_turn_cpu_ms"], 2),
    }


def _turn_ms(seconds: list[float]) -> float:
    """A median, for a machine that also does other things."""
    return round(statistics.median(seconds) / SAY_TURNS * 1000, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--rollout-turns", type=int, default=2_000)
    parser.add_argument("--stretch", type=int, default=10, help="messages that are measured at either end")
    parser.add_argument("--live", action="store_true", help="run every command of the thread")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    rows = [thread_row(arguments.turns, arguments.stretch, arguments.live), rollout_row(arguments.rollout_turns)]
    table = Table("figure", *(str(row["what"]) for row in rows))
    for key in dict.fromkeys(key for row in rows for key in row if key != "what"):
        table.add_row(key, *(str(row.get(key, "")) for row in rows))
    Console().print(table)
    if arguments.save:
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
        RESULTS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["say", home, name, first, count, each, how]:
            print(json.dumps(say(Path(home), name, int(first), int(count), int(each), how == "live")))
        case ["resume", home, name]:
            print(json.dumps(resume(Path(home), name)))
        case ["rollout", turns]:
            print(json.dumps(rollout(int(turns))))
        case _:
            main()
