"""One rollout as the tape shows it: facts about every step, and the steps themselves in slices.

The file is gone through once. What is kept of a step is where it lies and a row of small numbers, so that a tape of
many thousand turns can be drawn, filtered and searched without having its texts in memory.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from gametape.record.trajectory_index import TrajectoryIndex, index_trajectory
from gametape.studio.page import printable_text, short_model
from gametape.studio.step_view import (
    MOST_LEVELS,
    StepMark,
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
from gametape.studio.web.target_log import TargetLog
from gametape.studio.web.token_texts import TokenTexts

SLICE = 20
"""Steps that are served together."""
MOST_TAPES_KEPT = 12
_MOST_STEPS_KEPT = 400_000
_LONGEST_TEXT = 20_000
_MOST_TOKENS = 4_000
_MOST_SUBAGENTS = 50
_MOST_TURNS = 60
_DECIMALS = 5

FAILED, TARGET, FLAG, EVENT, COMPACTION, CUT_OFF, COPIED = (1 << place for place in range(7))
"""What a step may have, as bits: a failed call, a target of the coach, a broken rule, an event of the harness such as a
violation or a nudge, a new context, a reply that reached its limit, a step of an earlier trajectory."""
_SOURCES = {"system": 0, "user": 1, "agent": 2}
_HINT_FIELDS = ("step", "span", "source", "type", "text", "used", "kl", "evidence", "author", "noticed", "refused")


class StepSource(Protocol):
    """Where the steps of a tape come from: what a `TrajectoryIndex` has of a file."""

    @property
    def header(self) -> dict[str, Any]: ...

    @property
    def running(self) -> bool: ...

    def __len__(self) -> int: ...

    def steps(self, first: int, stop: int) -> Iterator[dict[str, Any]]: ...


@dataclass
class Tape:
    """`facts` has a row for each step: source, turn, sampled tokens, bits, mean surprisal, version of the weights."""

    index: StepSource
    facts: list[tuple[int, int, int, int, float | None, int | None]] = field(default_factory=list)
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    call_marks: list[int] = field(default_factory=list)
    """Of each turn, a number for what it called: equal for equal calls."""
    learned: set[int] = field(default_factory=set)
    """The steps that have tokens which were learned from."""
    scored: bool = False
    """Whether some turn has log-probabilities of its sampled tokens."""

    def read_on(self) -> None:
        """Take in the steps that are new in the index."""
        first = len(self.facts)
        for number, step in enumerate(self.index.steps(first, len(self.index)), start=first + 1):
            self._add(step, number)

    def _add(self, step: Mapping[str, Any], number: int) -> None:
        view = view_step(step, number, self.turns + 1)
        agent = view.source == "agent"
        metrics, ours = mapping(step.get("metrics")), gametape_fields(step)
        surprisal = _mean_surprisal(metrics.get("logprobs"))
        ids = _list(metrics.get("completion_token_ids"))
        self.scored = self.scored or surprisal is not None
        self.facts.append(
            (
                _SOURCES.get(view.source, 1),
                self.turns + 1,
                len(ids) or view.completion_tokens,
                _bits(view.results, view.marks, ours, view.copied),
                None if surprisal is None else round(surprisal, _DECIMALS),
                _last_version(_list(ours.get("policy_versions"))),
            )
        )
        if agent:
            self.call_marks.append(hash((view.text, *((call.name, str(call.arguments)) for call in view.calls))))
        if 1 in _list(ours.get("loss_mask")):
            self.learned.add(number)
        self.turns += agent
        if not view.copied:
            self.prompt_tokens += view.prompt_tokens
            self.completion_tokens += view.completion_tokens or len(ids)
            self.cost_usd += view.cost_usd

    @property
    def header(self) -> dict[str, Any]:
        return self.index.header

    @property
    def extra(self) -> Mapping[str, Any]:
        return mapping(self.header.get("extra"))

    @property
    def hints(self) -> list[dict[str, Any]]:
        return mappings(gametape_fields(self.header).get("targets"))

    @cached_property
    def readings(self) -> dict[int, dict[str, Any]]:
        """By step: what the update that learned from it saw at its tokens."""
        return {count(one.get("step")): one for one in mappings(gametape_fields(self.header).get("readings"))}

    @cached_property
    def forks(self) -> dict[int, dict[str, Any]]:
        """By step: two forks that the coach has run from it, one without the hint and one with it."""
        return {count(one.get("step")): one for one in mappings(gametape_fields(self.header).get("forks"))}

    @property
    def flags(self) -> list[dict[str, Any]]:
        """Broken rules, of the verdict and of the attempts at a goal."""
        flags = mappings(mapping(self.extra.get("verdict")).get("integrity"))
        for attempt in mappings(mapping(self.extra.get("goal")).get("attempts")):
            flags += mappings(attempt.get("tampering"))
        return flags

    def all_facts(self) -> list[list[Any]]:
        """The facts, with the bits of what the header says of single steps."""
        rows: list[list[Any]] = [[*row] for row in self.facts]
        for found, bit in ((self.hints, TARGET), (self.flags, FLAG)):
            for entry in found:
                at = count(entry.get("step"))
                if 0 < at <= len(rows):
                    rows[at - 1][3] |= bit
        return rows

    @property
    def outcome(self) -> str:
        return text_of(self.extra.get("outcome")) or ("running" if self.index.running else "")


class TapeStore:
    """The tapes that were looked at last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Tape] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, path: Path) -> Tape:
        """The tape of a file as it is now. Raises `BadInput`."""
        with self._lock:
            known = self._kept.pop(path, None)
            earlier = known.index if known else None
            index = index_trajectory(path, earlier if isinstance(earlier, TrajectoryIndex) else None)
            tape = known if known and known.index is index else Tape(index)
            tape.read_on()
            self._kept[path] = tape
            while len(self._kept) > MOST_TAPES_KEPT or (len(self._kept) > 1 and self._steps() > _MOST_STEPS_KEPT):
                self._kept.popitem(last=False)
            return tape

    def _steps(self) -> int:
        return sum(len(tape.facts) for tape in self._kept.values())


def tape_summary(tape: Tape, name: str, title: str = "") -> dict[str, Any]:
    """What the page needs before any step: who, what, how it ended, and the facts of all steps."""
    header, extra, ours = tape.header, tape.extra, gametape_fields(tape.header)
    agent = mapping(header.get("agent"))
    verdict = mapping(tame_numbers(mapping(extra.get("verdict"))))
    return {
        "name": name,
        "title": _cut(title),
        "task": _cut(text_of(extra.get("task"))),
        "agent": _cut(" ".join(filter(None, [text_of(agent.get("name")), text_of(agent.get("version"))]))),
        "model": short_model(_cut(text_of(agent.get("model_name")))),
        "outcome": _cut(tape.outcome),
        "reason": _cut(text_of(extra.get("reason"))),
        "reward": tame_numbers(extra.get("reward")),
        "advantage": _number(ours.get("advantage")),
        "running": tape.index.running,
        "steps": len(tape.facts),
        "turns": tape.turns,
        "prompt_tokens": tape.prompt_tokens,
        "completion_tokens": tape.completion_tokens,
        "cost_usd": round(tape.cost_usd, 6),
        "scored": tape.scored,
        "read": bool(tape.readings),
        "slice": SLICE,
        "facts": tape.all_facts(),
        "checks": [
            {
                "name": _cut(text_of(check.get("name"))),
                "score": _number(check.get("score")),
                "detail": _cut(_text(check)),
            }
            for check in mappings(verdict.get("checks"))
        ],
        "passed": verdict.get("passed") if isinstance(verdict.get("passed"), bool) else None,
        "loose_marks": [_mark(flag_mark(flag)) for flag in tape.flags if not count(flag.get("step"))],
        "subagents": [
            _cut(text_of(sub.get("trajectory_id")))
            for sub in mappings(header.get("subagent_trajectories"))[:_MOST_SUBAGENTS]
        ],
    }


def tape_slice(tape: Tape, first: int, targets: TargetLog | None, name: str, texts: TokenTexts) -> dict[str, Any]:
    """`SLICE` steps from index `first`, with their tokens, the hints at them, and what these did to each token."""
    measured = targets.of(name) if targets else {}
    steps = []
    for at, step in enumerate(tape.index.steps(first, min(first + SLICE, len(tape.facts))), start=first):
        number = at + 1
        marks = tuple(flag_mark(flag) for flag in tape.flags if flag.get("step") == number)
        view = view_step(step, number, tape.facts[at][1], marks).to_dict()
        entry: dict[str, Any] = _shown(view)
        entry["tokens"] = _tokens(step, texts, tape.readings.get(number, {}))
        entry["targets"] = [
            _target(hint, step, measured.get(number, []), texts) for hint in tape.hints if hint.get("step") == number
        ]
        entry["forks"] = _forks(tape.forks[number]) if entry["targets"] and number in tape.forks else None
        steps.append(entry)
    return {"first": first, "steps": steps}


def _target(
    hint: Mapping[str, Any], step: Mapping[str, Any], measured: list[dict[str, Any]], texts: TokenTexts
) -> dict[str, Any]:
    """A hint with what it changed: as an update measured it where the run has that, else as the coach did."""
    told: dict[str, Any] = {key: _safe(hint.get(key)) for key in _HINT_FIELDS}
    told["gates"] = [
        {"name": name.upper(), "passed": gate.get("passed") is True, "value": _number(gate.get("value")),
         "detail": _cut(text_of(gate.get("detail")))}
        for name, gate in ((name, mapping(mapping(hint.get("gates")).get(name))) for name in ("g0", "g1", "g2"))
        if gate
    ]  # fmt: skip
    line = next((line for line in reversed(measured) if line.get("text") == hint.get("text")), None)
    if line:
        return told | {"update": count(line.get("update")), "columns": _measured_columns(line, texts)}
    ids = _list(mapping(step.get("metrics")).get("completion_token_ids"))
    span = [at for at in _list(hint.get("span")) if isinstance(at, int)]
    own = ids[span[0] : span[1]] if len(span) == 2 else []
    columns = {
        "text": texts.of(own[:_MOST_TOKENS]),
        "student": _floats(hint.get("student_logprobs"))[:_MOST_TOKENS],
        "teacher": _floats(hint.get("teacher_logprobs"))[:_MOST_TOKENS],
    }
    return told | {"update": None, "columns": columns}


def _measured_columns(line: Mapping[str, Any], texts: TokenTexts) -> dict[str, Any]:
    columns: dict[str, Any] = {"text": texts.of(_list(line.get("ids"))[:_MOST_TOKENS])}
    for key in ("student", "teacher", "kl", "weights"):
        columns[key] = _floats(line.get(key))[:_MOST_TOKENS]
    for key in ("student_top", "teacher_top"):
        columns[key] = [_likeliest(top, texts) for top in _list(line.get(key))[:_MOST_TOKENS]]
    return columns


def _likeliest(top: Any, texts: TokenTexts) -> list[list[Any]]:
    """The first tokens of a distribution, each with its probability."""
    pairs = [pair for pair in _list(top)[:5] if isinstance(pair, list) and len(pair) == 2]
    return [[*texts.of([number]), _number(probability)] for number, probability in pairs]


def _forks(pair: Mapping[str, Any]) -> dict[str, Any]:
    sides = {name: mapping(pair.get(name)) for name in ("plain", "hinted")}
    turns = {
        name: [_fork_turn(turn) for turn in mappings(side.get("turns"))[:_MOST_TURNS]] for name, side in sides.items()
    }
    lines = zip_longest(turns["plain"], turns["hinted"])
    parting = next((number for number, (without, with_it) in enumerate(lines) if without != with_it), None)
    return {
        "parting": parting,
        **{
            name: {"passed": side.get("passed") is True, "turns": turns[name], "more": count(side.get("more"))}
            for name, side in sides.items()
        },
    }


def _fork_turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    calls = [_cut(text_of(call)) for call in _list(turn.get("calls"))[:_MOST_TURNS]]
    said, result = (_cut(text_of(turn.get(key))) for key in ("said", "result"))
    return {"said": said, "calls": calls, "result": result, "failed": turn.get("failed") is True}


def _tokens(step: Mapping[str, Any], texts: TokenTexts, reading: Mapping[str, Any]) -> dict[str, Any] | None:
    metrics, ours = mapping(step.get("metrics")), gametape_fields(step)
    ids = _list(metrics.get("completion_token_ids"))
    if not ids:
        return None
    return {
        "text": texts.of(ids[:_MOST_TOKENS]),
        "logprob": _floats(metrics.get("logprobs"))[:_MOST_TOKENS],
        "learner": _of_length(_floats(reading.get("learner")), len(ids))[:_MOST_TOKENS],
        "entropy": _of_length(_floats(reading.get("entropy")), len(ids))[:_MOST_TOKENS],
        "mask": [bit == 1 for bit in _list(ours.get("loss_mask"))[:_MOST_TOKENS]],
        "version": [at if isinstance(at, int) else None for at in _list(ours.get("policy_versions"))[:_MOST_TOKENS]],
        "more": max(0, len(ids) - _MOST_TOKENS),
        "known": texts.known,
    }


def _bits(results: Any, marks: tuple[StepMark, ...], ours: Mapping[str, Any], copied: bool) -> int:
    bits = FAILED if any(result.failed for result in results) else 0
    bits |= COPIED if copied else 0
    bits |= COMPACTION if ours.get("compacted") is True else 0
    for mark in marks:
        if mark.kind == "cut off":
            bits |= CUT_OFF
        elif mark.level == "warning":
            bits |= EVENT
    return bits


def _shown(value: Any, levels: int = MOST_LEVELS) -> Any:
    """Plain data with texts that are printable and not endless, and with three dots for what is nested too deep."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, Mapping | list | tuple) and not levels:
        return "..."
    if isinstance(value, Mapping):
        return {printable_text(str(key))[:200]: _shown(entry, levels - 1) for key, entry in value.items()}
    return [_shown(entry, levels - 1) for entry in value] if isinstance(value, list | tuple) else _safe(value)


def _safe(value: Any) -> Any:
    value = tame_numbers(value)
    return _cut(value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    text = printable_text(text)
    more = len(text) - _LONGEST_TEXT
    return text if more <= 0 else f"{text[:_LONGEST_TEXT]} ... ({more:,} more characters)"


def _mark(mark: StepMark) -> dict[str, str]:
    return {"kind": _cut(mark.kind), "text": _cut(mark.text), "level": mark.level}


def _text(check: Mapping[str, Any]) -> str:
    return text_of(check.get("detail"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _floats(value: Any) -> list[float]:
    """A column of numbers; empty where one of them is none."""
    numbers = [amount(entry) for entry in _list(value) if isinstance(entry, int | float)]
    return [round(number, _DECIMALS) for number in numbers] if len(numbers) == len(_list(value)) else []


def _mean_surprisal(logprobs: Any) -> float | None:
    """Minus the mean of a column; None where there is none, or where one of its numbers is none."""
    values = _list(logprobs)
    try:
        mean = -sum(values) / len(values)
    except (TypeError, ZeroDivisionError, OverflowError):
        return None
    return _number(mean)


def _last_version(versions: list[Any]) -> int | None:
    try:
        return max((at for at in set(versions) if isinstance(at, int)), default=None)
    except TypeError:  # a list among them
        return None


def _of_length(values: list[float], length: int) -> list[float]:
    """A column that has another length is of other tokens."""
    return values if len(values) == length else []


def _number(value: Any) -> float | None:
    tame = tame_numbers(value)
    return tame if isinstance(tame, int | float) and not isinstance(tame, bool) else None
