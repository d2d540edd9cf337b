"""What a run's rollouts came to, in tables: by rollout, by task, by flag and by cost.

Rollouts are opened only until a budget of bytes is used up, the newest first; a table says how many it has not opened.
What was read of a file is kept until the file changes.
"""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.trajectory_index import FileVersion, index_trajectory
from gametape.studio.page import printable_text
from gametape.studio.step_view import count, gametape_fields, mapping, tame_numbers, text_of
from gametape.studio.web.catalogue import RolloutFile
from gametape.studio.web.tape import COMPACTION, COPIED, CUT_OFF, EVENT, FAILED, Tape
from gametape.watch.costs import CostAccount, CostSum

PAGE = 100
"""Rollouts on one page."""
_MOST_KEPT = 4_000
_BYTES_A_PAGE = 64 << 20
_LONGEST = 300
_MOST_FLAGS = 50


@dataclass(frozen=True)
class FoundFlag:
    rollout: str
    step: int
    rule: str
    severity: str
    where: str
    evidence: str


@dataclass(frozen=True)
class RolloutFacts:
    """One rollout in numbers. `first_wrong` is the first step with a failed call, a target or a flag; 0 for none."""

    name: str
    outcome: str
    task: str = ""
    model: str = ""
    reward: float | None = None
    advantage: float | None = None
    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    targets: int = 0
    failed: int = 0
    events: int = 0
    first_wrong: int = 0
    flags: tuple[FoundFlag, ...] = ()
    version: int | None = None
    """The newest of the weights that sampled it."""
    changed: float = 0.0
    """When its file was."""
    problem: str = ""
    """Why the file cannot be read; empty where it can."""


class RolloutFactStore:
    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, FileVersion], RolloutFacts] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, files: Sequence[RolloutFile]) -> tuple[list[RolloutFacts], int]:
        """The facts of these files, in their order, and how many files there was no room for."""
        facts, left_out, room = [], 0, _BYTES_A_PAGE
        for file in files:
            key = (file.path, (0, file.size, int(file.changed * 1e9)))
            with self._lock:
                known = self._kept.get(key)
            if known is None and file.size > room:
                left_out += 1
                continue
            if known is None:
                room -= file.size
                known = read_facts(file)
                with self._lock:
                    self._kept[key] = known
                    while len(self._kept) > _MOST_KEPT:
                        self._kept.popitem(last=False)
            facts.append(known)
        return facts, left_out


def read_facts(file: RolloutFile) -> RolloutFacts:
    try:
        tape = Tape(index_trajectory(file.path))
        tape.read_on()
    except (BadInput, RecursionError) as error:
        return RolloutFacts(file.name, "broken", problem=_short(str(error)))
    rows = tape.all_facts()
    hints = [hint for hint in tape.hints if count(hint.get("step"))]
    wrong = [at for at, row in enumerate(rows, start=1) if row[3] & ~(EVENT | COMPACTION | CUT_OFF | COPIED)]
    return RolloutFacts(
        name=file.name,
        outcome=_short(tape.outcome),
        task=_short(text_of(tape.extra.get("task"))),
        model=_short(text_of(mapping(tape.header.get("agent")).get("model_name"))),
        reward=_number(tape.extra.get("reward")),
        advantage=_number(gametape_fields(tape.header).get("advantage")),
        turns=tape.turns,
        tokens=tape.prompt_tokens + tape.completion_tokens,
        cost_usd=tape.cost_usd,
        targets=len(hints),
        failed=sum(bool(row[3] & FAILED) for row in rows),
        events=sum(bool(row[3] & EVENT) for row in rows),
        first_wrong=min(wrong, default=0),
        version=max((row[5] for row in rows if row[5] is not None), default=None),
        changed=file.changed,
        flags=tuple(_flag(file.name, flag) for flag in tape.flags[:_MOST_FLAGS]),
    )


@dataclass
class TaskTally:
    """What the rollouts at one task came to."""

    task: str
    rollouts: int = 0
    passed: int = 0
    turns: int = 0
    reward: list[float] = field(default_factory=list)

    @property
    def mean_reward(self) -> float | None:
        return sum(self.reward) / len(self.reward) if self.reward else None


def by_task(facts: Sequence[RolloutFacts]) -> list[TaskTally]:
    """A row for each task, the hardest first."""
    rows: dict[str, TaskTally] = {}
    for fact in facts:
        row = rows.setdefault(fact.task, TaskTally(fact.task))
        row.rollouts += 1
        row.passed += fact.outcome == "passed"
        row.turns += fact.turns
        row.reward += [fact.reward] if fact.reward is not None else []
    return sorted(rows.values(), key=lambda row: (row.passed / row.rollouts, row.task))


def by_cost(facts: Sequence[RolloutFacts]) -> dict[str, dict[str, dict[str, Any]]]:
    """What rollouts with an outcome took: in all, by model and by task."""
    accounts: dict[str, defaultdict[str, CostAccount]] = {
        key: defaultdict(CostAccount) for key in ("all", "model", "task")
    }
    for number, fact in enumerate(facts):
        if fact.outcome not in ("", "running", "broken"):
            took = CostSum(fact.cost_usd, fact.tokens)
            for key, name in (("all", "all"), ("model", fact.model), ("task", fact.task)):
                accounts[key][name].add(number, fact.outcome == "passed", took)
    return {
        key: {name: account.to_dict() for name, account in sorted(named.items())} for key, named in accounts.items()
    }


def _flag(rollout: str, flag: dict[str, Any]) -> FoundFlag:
    where = ":".join(str(flag[key]) for key in ("file", "line") if isinstance(flag.get(key), str | int))
    return FoundFlag(
        rollout,
        count(flag.get("step")),
        _short(text_of(flag.get("rule"))),
        _short(text_of(flag.get("severity"))),
        _short(where),
        _short(text_of(flag.get("evidence"))),
    )


def _short(text: str) -> str:
    return printable_text(text)[:_LONGEST]


def _number(value: Any) -> float | None:
    tame = tame_numbers(value)
    return tame if isinstance(tame, int | float) and not isinstance(tame, bool) else None
