"""What happens in a simulated month, all of it drawn from one seed: who says what, what fails, and when."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROUND = 3600.0
"""Seconds of the clock between two rounds."""
ROUNDS_A_DAY = 24
_SYLLABLES = ("ba", "cor", "din", "fel", "gu", "har", "jo", "kes", "lum", "mi", "nor", "pra", "quo", "ri", "sul", "tev")


@dataclass(frozen=True)
class Size:
    """How much of everything there is."""

    days: int = 30
    threads: int = 20
    heartbeats: int = 60
    goals: int = 6
    kills: int = 60
    says: int = 5
    """Messages to each thread."""
    clock_changes: int = 12
    outages: int = 8
    full_disks: int = 8

    @property
    def rounds(self) -> int:
        return self.days * ROUNDS_A_DAY


@dataclass
class Plan:
    """By round: what a person does, what is changed and what fails."""

    seed: int
    size: Size
    says: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Thread and number of the message."""
    goals: dict[int, int] = field(default_factory=dict)
    news: dict[int, int] = field(default_factory=dict)
    """The heartbeat with events whose file is changed."""
    clock: dict[int, float] = field(default_factory=dict)
    """Seconds by which the wall clock is set."""
    outages: set[int] = field(default_factory=set)
    full: set[int] = field(default_factory=set)
    kill_after: list[int] = field(default_factory=list)
    """Of each life: how many writes it makes before it is killed; one that is over makes as many as it likes."""

    @classmethod
    def draw(cls, seed: int, size: Size) -> "Plan":
        chance, plan = random.Random(seed), cls(seed, size)
        last = size.rounds - ROUNDS_A_DAY // 2
        for thread in range(size.threads):
            for number, at in enumerate(sorted(chance.sample(range(1, last), size.says))):
                plan.says.setdefault(at, []).append((thread, number))
        for goal in range(size.goals):
            plan.goals[chance.randrange(1, last)] = goal
        for _ in range(size.days * 3):
            plan.news[chance.randrange(1, last)] = chance.randrange(1 << 16)
        for at in chance.sample(range(1, last), size.clock_changes):
            plan.clock[at] = chance.choice((-1, 1)) * chance.choice((90.0, 3600.0, 86_400.0, 3 * 86_400.0))
        for at in chance.sample(range(1, last), size.outages):
            plan.outages |= set(range(at, at + chance.randint(1, 12)))
        plan.full = set(chance.sample(range(1, last), size.full_disks))
        plan.kill_after = [int(chance.expovariate(1 / 120)) + 1 for _ in range(size.kills)]
        return plan

    def wall_offset(self, number: int) -> float:
        """How far the wall clock is from the steady one in a round."""
        return sum(seconds for at, seconds in self.clock.items() if at <= number)


def words(number: int, least: int = 6, most: int = 18) -> str:
    """A sentence that no other number has: an agent that repeats itself would be stopped by the watch."""
    chance = random.Random(number)
    count = chance.randint(least, most)
    return " ".join("".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(count)) + "."


def write_script(path: Path, turns: Sequence[tuple[str, list[dict[str, Any]]]]) -> str:
    path.write_text("".join(json.dumps({"text": text, "tool_calls": calls}) + "\n" for text, calls in turns))
    return f"scripted:{path}"


def thread_turns(thread: int, says: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """A note, a draft and an answer for each message, and some to spare for those that an outage cut off."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for number in range(says + 4):
        base = thread * 1_000 + number * 3
        note = {"name": f"agent/thread-{thread}-{number}", "text": words(base)}
        draft = {"to": "ann", "subject": f"draft {thread}-{number}", "text": words(base + 1)}
        turns += [
            (words(base), [{"name": "remember", "arguments": note}]),
            (words(base + 1), [{"name": "draft", "arguments": draft}]),
            (words(base + 2), []),
        ]
    return turns


def heartbeat_files(top: Path, size: Size) -> dict[str, str]:
    """The files of all heartbeats, by name: one of ten of each two kinds that wake each other, tell a digest or have no
    budget, the others asking, guarded, on events, at hours of the day and adaptive."""
    kinds = ("daily", "guarded", "events", "guarded", "halfday", "hours", "guarded", "daily", "adaptive", "daily")
    matter = {
        "daily": "cadence: {every: 1d}",
        "halfday": "cadence: {every: 12h}",
        "guarded": f"workspace: {top / 'workspace'}\ncadence: {{every: 8h}}\nguard: 'false'",
        "hours": "cadence: {cron: '30 6 * * *'}\ntimezone: Europe/Berlin\n"
        "active_hours: {from: '06:00', to: '20:00', days: [mon, tue, wed, thu, fri]}",
        "adaptive": "cadence: {adaptive: {fastest: 12h, slowest: 4d}}",
        "poor": "cadence: {every: 1d}\nbudget: {tokens: 1}",
    }
    files = {}
    for number in range(size.heartbeats):
        kind = kinds[number % len(kinds)]
        name = f"{kind}-{number}"
        if kind == "events":
            matter[kind] = f"workspace: {top / 'workspace'}\nevent: {{files: [{name}.txt], every: 1h}}"
        script = write_script(top / f"{name}.jsonl", [(words(50_000 + 700 * number + turn), []) for turn in range(400)])
        files[name] = f"---\nmodel: {script}\n{matter[kind]}\n---\nWhat is new?\n"
    first = next(name for name in files if name.startswith("daily"))
    chained = write_script(top / "chained.jsonl", [(words(40_000 + turn), []) for turn in range(200)])
    files["chained"] = f"---\nmodel: {chained}\nevent: {{heartbeat: {first}, every: 1h}}\n---\nWhat is new?\n"
    files["poor"] = f"---\nmodel: {chained}\n{matter['poor']}\n---\nWhat is new?\n"
    files["digest"] = "---\ndigest: true\ncadence: {every: 1d}\n---\n"
    for name in [name for name in files if name.startswith("guarded")][:3]:
        del files[name]
    return files
