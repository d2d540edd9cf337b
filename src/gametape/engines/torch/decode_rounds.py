"""Decoding in rounds: the device takes several steps of a whole batch before the host reads the sampled tokens.

While the host reads them, the device is already in the next round, unless a request has to be admitted or cancelled or
weights are to change. Sequences that end within a round stand still until the host sees it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from gametape.engines.torch.jobs import EngineJob, GenerateJob
from gametape.engines.torch.sequence_cache import SequenceCache

_ROUND = 16
"""Steps in a round."""
_SHORT_ROUND = 4
"""Fewer while a job runs that is not in the round: the next chunk of a prompt should not wait long."""
_HORIZON = 1024
"""The tokens for which a sequence is given blocks at once, if so many are free: rounds go on as long as blocks last."""
_NEAR_HORIZON = 128
"""The same if cached blocks have to be evicted for it."""


@dataclass(frozen=True)
class DecodeRow:
    """A sequence that decodes: its last token has no KV yet, all before it have, in `blocks`.

    The blocks have room for `max_new_tokens` more tokens. `seed` and the position of a token decide what is sampled.
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
    """The tokens that a row sampled in a round. A stop token is the last; all but the last have KV now."""

    ids: list[int]
    logprobs: list[float]


class GraphRunner(Protocol):
    """Runs rounds on a device: `start`, `continue_round`, `finish`, `continue_round`, `finish`, ..."""

    @property
    def max_length(self) -> int:
        """The most tokens that a row may have."""
        ...

    @property
    def max_stop_ids(self) -> int:
        """The most stop tokens that a row may have."""
        ...

    def start(self, rows: Sequence[DecodeRow], steps: int) -> None:
        """Begin a round: every row samples `steps` tokens, or fewer if its limit or a stop token ends it before."""
        ...

    def continue_round(self, steps: int) -> None:
        """Begin another round of the rows that have not ended, up to the limits they were started with."""
        ...

    def finish(self) -> list[DrawnTokens]:
        """Wait for the oldest round that was begun, and return its tokens in the order of the rows."""
        ...


class DecodeRounds:
    """Turns jobs into rows, allocates blocks for what they will sample, and keeps the device a round ahead."""

    def __init__(self, runner: GraphRunner, sequences: SequenceCache) -> None:
        self._runner, self._sequences = runner, sequences

    def accepts(self, job: EngineJob) -> TypeGuard[GenerateJob]:
        """Whether the next tokens of this job can be sampled in a round; if not, it is stepped with the prompts."""
        return (
            isinstance(job, GenerateJob)
            and job.sequence.remaining == 1
            and job.matcher is None
            and job.max_length <= self._runner.max_length
            and len(job.request.stop_ids) <= self._runner.max_stop_ids
        )

    def has_room(self, jobs: Sequence[GenerateJob]) -> bool:
        """Whether there are blocks for one token of each."""
        return self._missing_blocks(jobs, 1) <= self._sequences.pool.available_blocks

    def run(
        self,
        jobs: Sequence[GenerateJob],
        version: int,
        short: bool,
        should_stop: Callable[[], bool],
        meanwhile: Callable[[], None],
    ) -> Iterator[list[DrawnTokens]]:
        """The tokens of the jobs, round after round; there is room for them. `short` is one short round.

        `meanwhile` is called when the last round has been sent, before its tokens are waited for.
        A job that is ended meanwhile samples nothing in later rounds, and its blocks are not written to.
        """
        rows = self._rows(jobs, version)
        left = max(row.max_new_tokens for row in rows)
        steps = min(left, _SHORT_ROUND if short else _ROUND)
        self._runner.start(rows, steps)
        while steps:
            left -= steps
            steps = 0 if short or should_stop() else min(left, _ROUND)
            if steps:
                self._runner.continue_round(steps)
            else:
                meanwhile()
            yield self._runner.finish()

    def _rows(self, jobs: Sequence[GenerateJob], version: int) -> list[DecodeRow]:
        ahead = _HORIZON
        while ahead > _NEAR_HORIZON and self._missing_blocks(jobs, ahead) > self._sequences.pool.free_blocks:
            ahead //= 2
        while ahead > 1 and self._missing_blocks(jobs, ahead) > self._sequences.pool.available_blocks:
            ahead //= 2
        rows = []
        for job in jobs:
            limit = min(ahead, job.tokens_left)
            self._sequences.allocate(job.sequence, limit, version)
            rows.append(_row(job, limit))
        return rows

    def _missing_blocks(self, jobs: Sequence[GenerateJob], ahead: int) -> int:
        return sum(self._sequences.missing_blocks(job.sequence, min(ahead, job.tokens_left)) for job in jobs)


def _row(job: GenerateJob, limit: int) -> DecodeRow:
    sequence, sampling = job.sequence, job.sampling
    return DecodeRow(
        token=sequence.ids[-1],
        length=sequence.computed,
        blocks=sequence.blocks,
        max_new_tokens=limit,
        seed=job.seed,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        stop_ids=job.request.stop_ids,
    )
