"""Decoding in rounds: the device takes several steps of a whole batch before the host looks at what it drew.

While the host looks, the device is already in the next round, as long as nothing presses: nobody has to be let in or
given up, no weights are to be changed. Sequences that end within a round stand still until the host sees it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from gametape.engines.torch.jobs import EngineJob, GenerateJob
from gametape.engines.torch.sequence_cache import SequenceCache

_ROUND = 16
"""Steps between two looks of the host."""
_SHORT_ROUND = 4
"""Fewer while somebody runs who is not in the round: the next piece of a prompt should not wait long."""
_HORIZON = 128
"""For how many tokens a sequence is given room at once, if there is room."""


@dataclass(frozen=True)
class DecodeRow:
    """A sequence that decodes: its last token has no KV yet, all before it have, in `blocks`.

    The blocks have room for `limit` tokens more than have KV now. `seed` and the position of a token decide its draw.
    """

    token: int
    length: int
    blocks: list[int]
    max_new_tokens: int
    seed: int
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    stop_ids: Sequence[int] = ()


@dataclass(frozen=True)
class DrawnTokens:
    """What a line drew in a round. A stop token is the last; all but the last have KV now."""

    ids: list[int]
    logprobs: list[float]


class GraphRunner(Protocol):
    """Steps that a device takes by itself, once they are sent: `start`, `go_on`, `finish`, `go_on`, `finish`, ..."""

    @property
    def max_length(self) -> int:
        """How many tokens a line may have."""
        ...

    @property
    def max_stop_ids(self) -> int:
        """How many stop tokens a line may have."""
        ...

    def start(self, rows: Sequence[DecodeRow], steps: int) -> None:
        """Begin a round: every line draws `steps` tokens, or fewer if its limit or a stop token ends it before."""
        ...

    def continue_round(self, steps: int) -> None:
        """Begin another round of the lines that have not ended, up to the limits they were started with."""
        ...

    def finish(self) -> list[DrawnTokens]:
        """What the lines drew in the oldest round that was sent, in their order."""
        ...


class DecodeRounds:
    """Turns jobs into lines, finds room for what they will draw, and keeps the device a round ahead."""

    def __init__(self, runner: GraphRunner, sequences: SequenceCache) -> None:
        self._recorded, self._slots = runner, sequences

    def accepts(self, job: EngineJob) -> TypeGuard[GenerateJob]:
        """Whether the next tokens of this job can be drawn in a round; if not, it is stepped with the prompts."""
        return (
            isinstance(job, GenerateJob)
            and job.sequence.remaining == 1
            and job.matcher is None
            and job.max_length <= self._recorded.max_length
            and len(job.request.stop_ids) <= self._recorded.max_stop_ids
        )

    def has_room(self, jobs: Sequence[GenerateJob]) -> bool:
        """Whether there is room for one token of each."""
        return self._missing(jobs, 1) <= self._slots.pool.available_blocks

    def run(
        self, jobs: Sequence[GenerateJob], version: int, short: bool, should_stop: Callable[[], bool]
    ) -> Iterator[list[DrawnTokens]]:
        """What the jobs drew, round after round; they fit. `short` is one round, and a short one.

        A job that is ended meanwhile draws nothing in later rounds, and its blocks are not written to.
        """
        lines = self._lines(jobs, version)
        left = max(line.max_new_tokens for line in lines)
        steps = min(left, _SHORT_ROUND if short else _ROUND)
        self._recorded.start(lines, steps)
        while steps:
            left -= steps
            steps = 0 if short or should_stop() else min(left, _ROUND)
            if steps:
                self._recorded.continue_round(steps)
            yield self._recorded.finish()

    def _lines(self, jobs: Sequence[GenerateJob], version: int) -> list[DecodeRow]:
        ahead = _HORIZON
        while ahead > 1 and self._missing(jobs, ahead) > self._slots.pool.available_blocks:
            ahead //= 2
        lines = []
        for job in jobs:
            limit = min(ahead, job.tokens_left)
            self._slots.allocate(job.sequence, limit, version)
            lines.append(_line(job, limit))
        return lines

    def _missing(self, jobs: Sequence[GenerateJob], ahead: int) -> int:
        return sum(self._slots.missing_blocks(job.sequence, min(ahead, job.tokens_left)) for job in jobs)


def _line(job: GenerateJob, limit: int) -> DecodeRow:
    slot, sampling = job.sequence, job.sampling
    return DecodeRow(
        token=slot.ids[-1],
        length=slot.computed,
        blocks=slot.blocks,
        max_new_tokens=limit,
        seed=job.seed,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        stop_ids=job.request.stop_ids,
    )
