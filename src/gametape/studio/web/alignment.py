"""Rollouts of one task aligned by turn: what they did alike once, and from where they part beside each other.

Two turns are alike where the agent said and called the same; what the calls came to is shown, and does not decide it.
Of a long rollout only the turns around the parting are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from gametape.studio.call_parts import call_parts
from gametape.studio.step_view import CallView, StepView, view_step
from gametape.studio.web.tape import FAILED, FLAG, TARGET, Tape

MOST_SIDES = 16
"""Rollouts beside each other."""
_MOST_BEFORE = 12
_MOST_APART = 30
_AGENT = 2


@dataclass(frozen=True)
class AlignedResult:
    text: str
    failed: bool


@dataclass(frozen=True)
class AlignedTurn:
    """What an agent did in a turn, with the bits of its step."""

    step: int
    said: str
    calls: tuple[str, ...]
    results: tuple[AlignedResult, ...]
    bits: int

    @property
    def did(self) -> tuple[str, tuple[str, ...]]:
        return self.said, self.calls

    @property
    def marks(self) -> list[str]:
        named = ((TARGET, "target"), (FLAG, "flag"), (FAILED, "failed"))
        return [name for bit, name in named if self.bits & bit]


@dataclass(frozen=True)
class AlignedRow:
    """One turn: `turns` has one entry for each side, None where a side has ended."""

    number: int
    turns: Sequence[AlignedTurn | None]
    common: bool

    @property
    def same_results(self) -> bool:
        return len({turn.results for turn in self.turns if turn}) <= 1


@dataclass(frozen=True)
class RolloutAlignment:
    """`parting` is the first turn in which not all did the same, 0 where they never part. `earlier` turns before the
    first row were alike too, and `later` turns behind the last row are not shown."""

    parting: int
    rows: Sequence[AlignedRow]
    earlier: int
    later: int


def align(tapes: Sequence[Tape]) -> RolloutAlignment:
    """Align by turn. All turns are compared; those around the parting are read."""
    parting = _parting(tapes)
    longest = max((tape.turns for tape in tapes), default=0)
    alike = parting - 1 if parting else longest
    first = max(0, alike - _MOST_BEFORE)
    last = min(longest, alike + _MOST_APART)
    columns = [_turns(tape, first, last) for tape in tapes]
    rows = [
        AlignedRow(number, turns, number <= alike)
        for number, turns in enumerate(zip_longest(*columns), start=first + 1)
    ]
    return RolloutAlignment(parting, rows, first, longest - last)


def _parting(tapes: Sequence[Tape]) -> int:
    for number, marks in enumerate(zip_longest(*(tape.call_marks for tape in tapes)), start=1):
        if len(set(marks)) > 1:
            return number
    return 0


def _turns(tape: Tape, first: int, last: int) -> list[AlignedTurn]:
    """The turns of a tape from index `first`, before index `last`."""
    rows = tape.all_facts()
    places = [at for at, row in enumerate(rows) if row[0] == _AGENT][first:last]
    if not places:
        return []
    steps = enumerate(tape.index.steps(places[0], places[-1] + 1), start=places[0])
    wanted = set(places)
    return [_turn(step, at + 1, rows[at][3]) for at, step in steps if at in wanted]


def _turn(step: Mapping[str, Any], number: int, bits: int) -> AlignedTurn:
    view: StepView = view_step(step, number, 0)
    results = tuple(AlignedResult(result.text.strip(), result.failed) for result in view.results)
    return AlignedTurn(number, view.text.strip(), tuple(map(_call_text, view.calls)), results, bits)


def _call_text(call: CallView) -> str:
    parts = call_parts(call)
    short = " ".join(f"{key}={value}" for key, value in parts.short.items())
    blocks = [f"{key}:\n{value}" for key, value in parts.blocks.items()]
    return "\n".join([f"{call.name} {short}".strip(), *blocks, *parts.diff])
