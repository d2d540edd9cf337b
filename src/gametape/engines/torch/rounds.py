"""Decoding in rounds: the device takes several steps of a whole batch before the host looks at what it drew.

While the host looks, the device is already in the next round, as long as nothing presses: nobody has to be let in or
given up, no weights are to be changed. Sequences that end within a round stand still until the host sees it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from gametape.engines.torch.jobs import Continue, Job
from gametape.engines.torch.slots import Slots

_ROUND = 16
"""Steps between two looks of the host."""
_SHORT_ROUND = 4
"""Fewer while somebody runs who is not in the round: the next piece of a prompt should not wait long."""
_HORIZON = 128
"""For how many tokens a sequence is given room at once, if there is room."""


@dataclass(frozen=True)
class Line:
    """A sequence that decodes: its last token has no KV yet, all before it have, in `blocks`.

    The blocks have room for `limit` tokens more than have KV now. `seed` and the position of a token decide its draw.
    """

    token: int
    length: int
    blocks: list[int]
    limit: int
    seed: int
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    stop_ids: Sequence[int] = ()


@dataclass(frozen=True)
class Drawn:
    """What a line drew in a round. A stop token is the last; all but the last have KV now."""

    ids: list[int]
    logprobs: list[float]


class Recorded(Protocol):
    """Steps that a device takes by itself, once they are sent: `start`, `go_on`, `finish`, `go_on`, `finish`, ..."""

    @property
    def longest(self) -> int:
        """How many tokens a line may have."""
        ...

    @property
    def stops(self) -> int:
        """How many stop tokens a line may have."""
        ...

    def start(self, lines: Sequence[Line], steps: int) -> None:
        """Begin a round: every line draws `steps` tokens, or fewer if its limit or a stop token ends it before."""
        ...

    def go_on(self, steps: int) -> None:
        """Begin another round of the lines that have not ended, up to the limits they were started with."""
        ...

    def finish(self) -> list[Drawn]:
        """What the lines drew in the oldest round that was sent, in their order."""
        ...


class Rounds:
    """Turns jobs into lines, finds room for what they will draw, and keeps the device a round ahead."""

    def __init__(self, recorded: Recorded, slots: Slots) -> None:
        self._recorded, self._slots = recorded, slots

    def takes(self, job: Job) -> TypeGuard[Continue]:
        """Whether the next tokens of this job can be drawn in a round; if not, it is stepped with the prompts."""
        return (
            isinstance(job, Continue)
            and job.slot.remaining == 1
            and job.matcher is None
            and job.longest <= self._recorded.longest
            and len(job.request.stop_ids) <= self._recorded.stops
        )

    def fit(self, jobs: Sequence[Continue]) -> bool:
        """Whether there is room for one token of each."""
        return self._missing(jobs, 1) <= self._slots.pool.available

    def run(
        self, jobs: Sequence[Continue], version: int, short: bool, pressing: Callable[[], bool]
    ) -> Iterator[list[Drawn]]:
        """What the jobs drew, round after round; they fit. `short` is one round, and a short one.

        A job that is ended meanwhile draws nothing in later rounds, and its blocks are not written to.
        """
        lines = self._lines(jobs, version)
        left = max(line.limit for line in lines)
        steps = min(left, _SHORT_ROUND if short else _ROUND)
        self._recorded.start(lines, steps)
        while steps:
            left -= steps
            steps = 0 if short or pressing() else min(left, _ROUND)
            if steps:
                self._recorded.go_on(steps)
            yield self._recorded.finish()

    def _lines(self, jobs: Sequence[Continue], version: int) -> list[Line]:
        ahead = _HORIZON
        while ahead > 1 and self._missing(jobs, ahead) > self._slots.pool.available:
            ahead //= 2
        lines = []
        for job in jobs:
            limit = min(ahead, job.left)
            self._slots.make_room(job.slot, limit, version)
            lines.append(_line(job, limit))
        return lines

    def _missing(self, jobs: Sequence[Continue], ahead: int) -> int:
        return sum(self._slots.missing(job.slot, min(ahead, job.left)) for job in jobs)


def _line(job: Continue, limit: int) -> Line:
    slot, sampling = job.slot, job.sampling
    return Line(
        token=slot.ids[-1],
        length=slot.computed,
        blocks=slot.blocks,
        limit=limit,
        seed=job.seed,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        stop_ids=job.request.stop_ids,
    )
