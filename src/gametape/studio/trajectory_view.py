"""A whole trajectory as people are shown it: who worked on what, how it ended, what it took, and its steps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path
from gametape.record.trajectory_stream import stream_trajectory
from gametape.studio.step_view import (
    StepMark,
    StepView,
    amount,
    count,
    flag_mark,
    gametape_fields,
    mapping,
    mappings,
    tame_numbers,
    text_of,
    view_step,
)


@dataclass
class TrajectoryTotals:
    """Sums over all steps, whether they are shown or not."""

    steps: int = 0
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    first: str = ""
    last: str = ""
    prompt: str = ""
    """The first message of a user."""

    def add(self, step: StepView) -> None:
        self.steps += 1
        self.turns += step.source == "agent"
        self.prompt = self.prompt or (step.text if step.source == "user" else "")
        if not step.copied:
            self.prompt_tokens += step.prompt_tokens
            self.completion_tokens += step.completion_tokens
            self.cached_tokens += step.cached_tokens
            self.cost_usd += step.cost_usd
        self.first = self.first or step.time
        self.last = step.time or self.last

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def seconds(self) -> float | None:
        """From the first to the last step that say when they were."""
        try:
            return (datetime.fromisoformat(self.last) - datetime.fromisoformat(self.first)).total_seconds()
        except (ValueError, TypeError):
            return None


@dataclass(frozen=True)
class TrajectoryView:
    path: Path
    version: str
    name: str
    agent: str
    model: str
    task: str
    outcome: str
    """Empty where none is recorded; `running` for a journal."""
    reason: str
    totals: TrajectoryTotals
    steps: list[StepView]
    verdict: Mapping[str, Any] = field(default_factory=dict)
    marks: list[StepMark] = field(default_factory=list)
    """Flags and hints that belong to no step."""
    subagents: "list[TrajectoryView]" = field(default_factory=list)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The task where it is recorded; else the first line that the user said beside a heading."""
        said = (line.strip() for line in self.totals.prompt.splitlines())
        line = next((line for line in said if line and not line.endswith(":")), "")
        return self.task or line or self.name or self.path.name

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        totals = self.totals
        return {
            "file": str(self.path.absolute()),
            "version": self.version,
            "id": self.name or None,
            "agent": self.agent or None,
            "model": self.model or None,
            "task": self.task or None,
            "outcome": self.outcome or None,
            "reason": self.reason or None,
            "turns": totals.turns,
            "prompt_tokens": totals.prompt_tokens,
            "completion_tokens": totals.completion_tokens,
            "cached_tokens": totals.cached_tokens,
            "cost_usd": totals.cost_usd,
            "seconds": totals.seconds,
            "verdict": dict(self.verdict) or None,
            "marks": [{"kind": mark.kind, "text": mark.text, "level": mark.level} for mark in self.marks],
            "steps": [step.to_dict() for step in self.steps],
            "subagents": [{"id": sub.name, "agent": sub.agent, "turns": sub.totals.turns} for sub in self.subagents],
        }


def read_trajectory(path: Path, wanted: Callable[[int], bool] = lambda _turn: True) -> TrajectoryView:
    """A trajectory of any version and maker, or a journal, with the steps of the turns that are `wanted`."""
    totals = TrajectoryTotals()
    kept: list[tuple[int, int]] = []

    def keep(step: dict[str, Any]) -> bool:
        number, turn = totals.steps + 1, totals.turns + 1
        totals.add(view_step(step, number, turn))
        if wanted(turn):
            kept.append((number, turn))
        return bool(kept) and kept[-1][0] == number

    read = stream_trajectory(path, keep)
    return _view(path, read.header, [*zip(read.steps, kept, strict=True)], totals, read.running)


def find_subagent(view: TrajectoryView, name: str) -> TrajectoryView:
    """The subagent with this id, at any depth."""
    waiting = [*view.subagents]
    while waiting:
        sub = waiting.pop(0)
        if sub.name == name:
            return sub
        waiting += sub.subagents
    raise BadInput(f"{printable_path(view.path)}: there is no subagent {name!r} in it")


def _view(
    path: Path,
    header: Mapping[str, Any],
    steps: list[tuple[dict[str, Any], tuple[int, int]]],
    totals: TrajectoryTotals,
    running: bool,
) -> TrajectoryView:
    agent, extra, final = mapping(header.get("agent")), mapping(header.get("extra")), header.get("final_metrics")
    marks, loose = _marks(extra, gametape_fields(header))
    _take_final_metrics(totals, mapping(final))
    return TrajectoryView(
        path=path,
        version=text_of(header.get("schema_version")),
        name=text_of(header.get("trajectory_id") or header.get("session_id")),
        agent=" ".join(filter(None, [text_of(agent.get("name")), text_of(agent.get("version"))])),
        model=text_of(agent.get("model_name")),
        task=text_of(extra.get("task")),
        outcome=text_of(extra.get("outcome")) or ("running" if running else ""),
        reason=text_of(extra.get("reason")),
        totals=totals,
        steps=[view_step(step, number, turn, tuple(marks.get(number, ()))) for step, (number, turn) in steps],
        verdict=_verdict(extra),
        marks=loose,
        subagents=[_subagent(path, sub) for sub in mappings(header.get("subagent_trajectories"))],
        extra=extra,
    )


def _verdict(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """The verdict of a record; its checks are a list of objects, whatever was written there."""
    verdict = tame_numbers(mapping(extra.get("verdict")))
    return {**verdict, "checks": mappings(verdict.get("checks"))} if verdict else {}


def _subagent(path: Path, document: dict[str, Any]) -> TrajectoryView:
    totals, steps = TrajectoryTotals(), []
    for number, step in enumerate(mappings(document.get("steps")), start=1):
        turn = totals.turns + 1
        totals.add(view_step(step, number, turn))
        steps.append((step, (number, turn)))
    return _view(path, document, steps, totals, running=False)


def _take_final_metrics(totals: TrajectoryTotals, final: Mapping[str, Any]) -> None:
    """Where the steps do not say what they took, the trajectory's own sums do."""
    if not totals.tokens:
        totals.prompt_tokens = count(final.get("total_prompt_tokens"))
        totals.completion_tokens = count(final.get("total_completion_tokens"))
        totals.cached_tokens = count(final.get("total_cached_tokens"))
    totals.cost_usd = totals.cost_usd or amount(final.get("total_cost_usd"))


def _marks(extra: Mapping[str, Any], ours: Mapping[str, Any]) -> tuple[dict[int, list[StepMark]], list[StepMark]]:
    """Hints and flags by the step that they are about, and those that name none."""
    by_step: dict[int, list[StepMark]] = {}
    loose: list[StepMark] = []

    def put(step: Any, mark: StepMark) -> None:
        (by_step.setdefault(step, []) if count(step) else loose).append(mark)

    for hint in mappings(ours.get("targets")):
        used = "" if hint.get("used", True) else " (not used)"
        put(hint.get("step"), StepMark("hint", f"{text_of(hint.get('text'))}{used}", "good"))
    flags = mappings(mapping(extra.get("verdict")).get("integrity"))
    for attempt in mappings(mapping(extra.get("goal")).get("attempts")):
        flags += mappings(attempt.get("tampering"))
    for flag in flags:
        put(flag.get("step"), flag_mark(flag))
    return by_step, loose
