"""The core of the engine, without threads or clocks: each step admits, schedules, reads and samples."""

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor

from gametape.engines.torch.attention.interface import AttentionPlanner, PackedForward, SequenceSpan
from gametape.engines.torch.decode_rounds import DecodeRounds, DrawnTokens, GraphRunner
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.device_copies import Download, upload
from gametape.engines.torch.grammar import mask_logits
from gametape.engines.torch.jobs import EngineJob, FinishReason, GenerateJob, ScoreJob
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.kv_offload import KVOffload
from gametape.engines.torch.prefix_index import PrefixIndex
from gametape.engines.torch.sampler import sample_tokens, token_logprobs, uniform
from gametape.engines.torch.scheduler import SequenceDemand, schedule_step
from gametape.engines.torch.sequence_cache import SequenceCache, worth_waiting_for

_READS_IN_A_ROW = 8
"""Steps that read prompts before those that decode beside them get a round: a full batch decodes at little more than
the price of half a one, so it pays to fill it first."""


@dataclass(frozen=True)
class EngineLimits:
    """`token_budget` bounds the tokens of a step; keys and values are at most `max_staleness` versions old.

    `offload_blocks` evicted blocks are kept in the host's memory.
    """

    max_sequences: int = 64
    token_budget: int = 512
    max_staleness: int = 0
    offload_blocks: int = 0


@dataclass
class EngineStats:
    """Counters since the engine was made."""

    steps: int = 0
    read_tokens: int = 0
    sampled_tokens: int = 0
    cached_tokens: int = 0
    """Tokens whose keys and values came from the cache."""
    fetched_blocks: int = 0
    """Blocks that were copied back from the host's memory."""
    preempted: int = 0
    """How often a sequence had to release its blocks for an older one."""


@dataclass(frozen=True)
class _SampledTokens:
    """First tokens after prompts, on their way to the host."""

    jobs: list[GenerateJob]
    version: int
    tokens_and_logprobs: Download


class Stepper:
    """The engine's state. All methods are called on one thread."""

    def __init__(
        self,
        decoder: Decoder,
        pool: BlockPool,
        planner: AttentionPlanner,
        limits: EngineLimits,
        runner: GraphRunner | None = None,
        forward: PackedForward | None = None,
    ) -> None:
        """With a `runner`, sequences decode in rounds, and only prompts are read here: by `forward`, or else by the
        decoder with the planner's attention."""
        self.decoder, self.pool, self.limits = decoder, pool, limits
        self.stats = EngineStats()
        self.version = 0
        self._forward = forward or self._plain_forward
        self._planner = planner
        self._sampled: deque[_SampledTokens] = deque()
        self._reads = 0
        self._sequences = SequenceCache(pool, PrefixIndex(pool), KVOffload(pool, limits.offload_blocks))
        self._rounds = DecodeRounds(runner, self._sequences) if runner else None
        self._waiting: list[EngineJob] = []
        self._running: list[EngineJob] = []
        self.step_context: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered for the time of each step, by whoever measures it."""

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running)

    @property
    def uses_graphs(self) -> bool:
        """Whether steps are recorded as CUDA graphs, which contain the addresses of the weights."""
        return self._rounds is not None

    @property
    def capacity(self) -> int:
        """The most tokens that one sequence may have."""
        return self.pool.block_count * self.pool.block_size

    def add(self, job: EngineJob) -> None:
        insort(self._waiting, job, key=attrgetter("arrival"))

    def cancel(self, arrival: int) -> None:
        """End a job, waiting or running; does nothing if it has ended already."""
        self.settle()
        for job in [job for job in (*self._waiting, *self._running) if job.arrival == arrival]:
            self._end(job, "cancelled")

    def cancel_all(self) -> None:
        self.settle()
        for job in (*self._waiting, *self._running):
            self._end(job, "cancelled")

    def weights_changed(self, version: int, decoder: Decoder | None = None) -> None:
        """The weights were changed in place, or `decoder` takes over.

        Keys and values that are too old for the new version are computed again; score jobs start again.
        """
        self.settle()
        self.version = version
        if decoder:
            self.decoder = decoder
        else:
            self.decoder.refresh()
        for job in self._running:
            job.interrupted = True
            self._sequences.crop(job.sequence, self._sequences.count_fresh_blocks(job.sequence, self._oldest))
        self._sequences.drop_older_than(self._oldest)
        for job in (*self._waiting, *self._running):
            if isinstance(job, ScoreJob):
                job.restart()

    def clear_cache(self) -> None:
        """Drop all cached blocks: what comes next does not depend on what came before."""
        self._sequences.drop_older_than(self.version + 1)

    def settle(self) -> None:
        """Wait for what the device was sent, and add the tokens that it sampled."""
        while self._sampled:
            self._add_sampled(self._sampled.popleft())

    def step(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Read the scheduled tokens, and sample for the sequences that have been read to the end.

        Rounds follow each other until `should_stop`, or until a job waits and there is room for it. Where there are
        rounds, the host does not wait for what it reads: the step may end before the tokens of its prompts are there.
        """
        self._admit()
        if not self._is_roomy():
            self.settle()
        scheduled = self._schedule()
        rounds = self._rounds
        others = [(job, count) for job, count in scheduled if not (rounds and rounds.accepts(job))]
        with self.step_context(), torch.inference_mode():
            if others:
                self._run(others)
            if rounds is None:
                self.settle()
            elif others and self._reads_on():
                while len(self._sampled) > 1:
                    self._add_sampled(self._sampled.popleft())
            else:
                self._reads = 0
                self._run_rounds(rounds, [job for job, _ in scheduled], should_stop)

    def _reads_on(self) -> bool:
        """Whether the next step reads prompts too, before the next round."""
        self._reads += 1
        return self._reads < _READS_IN_A_ROW and any(job.sequence.remaining > 1 for job in self._running)

    def _run_rounds(self, rounds: DecodeRounds, scheduled: list[EngineJob], should_stop: Callable[[], bool]) -> None:
        """Prompts that have been read to their end join the sequences that decode, if there is room."""
        decoding = [job for job in scheduled if rounds.accepts(job)]
        self.settle()
        ready = [job for job in self._running if rounds.accepts(job)]
        if rounds.has_room(ready):
            decoding = ready
        if not decoding:
            return
        running = len(self._running)
        for drawn in rounds.run(
            decoding,
            self.version,
            short=len(decoding) < running,
            should_stop=lambda: should_stop() or bool(self._waiting and len(self._running) < running),
            meanwhile=lambda: self._read_beside(decoding),
        ):
            self._add_round(decoding, drawn)

    def _read_beside(self, decoding: Sequence[GenerateJob]) -> None:
        """Read prompts while the device is in the last round of these jobs: it begins with them right behind."""
        if not self._waiting or not self._is_roomy():
            return
        self._admit()
        held = {job.arrival for job in decoding}
        newcomers = [(job, count) for job, count in self._schedule() if job.arrival not in held]
        if newcomers:
            self._run(newcomers)

    def _add_round(self, jobs: Sequence[GenerateJob], drawn: Sequence[DrawnTokens]) -> None:
        """Add the tokens of a round; a job that had ended before sampled none."""
        self.stats.steps += max(len(tokens.ids) for tokens in drawn)
        for job, tokens in zip(jobs, drawn, strict=True):
            if tokens.ids:
                self.stats.read_tokens += len(tokens.ids)
                self.stats.sampled_tokens += len(tokens.ids)
                reason = job.append_sampled(tokens.ids, tokens.logprobs, self.version)
                self._sequences.advance(job.sequence, len(tokens.ids))
                if reason:
                    self._end(job, reason)

    def _run(self, scheduled: Sequence[tuple[EngineJob, int]]) -> None:
        spans, ids, outputs, start = [], [], [], 0
        for job, count in scheduled:
            sequence = job.sequence
            self._sequences.allocate(sequence, count, self.version)
            spans.append(SequenceSpan(start, count, sequence.computed, sequence.blocks))
            ids += sequence.ids[sequence.computed : sequence.computed + count]
            outputs.append(sequence.computed + count - max(sequence.first_output, sequence.computed))
            start += count
        hidden_NE = self._forward(ids, spans)
        for job, count in scheduled:
            self._sequences.advance(job.sequence, count)
        self.stats.steps += 1
        self.stats.read_tokens += len(ids)
        self._sample([job for job, _ in scheduled], spans, [max(0, rows) for rows in outputs], hidden_NE)

    def _plain_forward(self, ids: Sequence[int], spans: Sequence[SequenceSpan]) -> Tensor:
        device = self.decoder.device
        positions = [at for span in spans for at in range(span.past, span.past + span.count)]
        attend = self._planner(self.pool, spans)
        return self.decoder.forward(torch.tensor(ids, device=device), torch.tensor(positions, device=device), attend)

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.limits.max_sequences:
            job = self._waiting[0]
            if not job.sequence.blocks:
                cached = self._sequences.reuse_prefix(job.sequence, fetch=False)
                if (
                    self._running
                    and self._sequences.missing_blocks(job.sequence, job.sequence.remaining) + len(self._running)
                    > self.pool.available_blocks
                ):
                    self._sequences.release(job.sequence)
                    return
                self._count_cached(job, cached)
            del self._waiting[0]
            insort(self._running, job, key=attrgetter("arrival"))

    def _schedule(self) -> list[tuple[EngineJob, int]]:
        demands = self._demands()
        decision = schedule_step(demands, self.pool.available_blocks, self.pool.block_size, self.limits.token_budget)
        scheduled = [(job, count) for job, count in zip(self._running, decision.tokens, strict=True) if count]
        for at in decision.preempted:
            job = self._running.pop(at)
            self._sequences.release(job.sequence)
            self.add(job)
            job.interrupted = True
            self.stats.preempted += 1
        return scheduled

    def _demands(self) -> list[SequenceDemand]:
        """A prompt that begins like one that is being read in this step waits a step, to find it in the cache."""
        claims: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        left: list[int] = []
        requested = 0
        for job in self._running:
            sequence, remaining = job.sequence, job.sequence.remaining
            if remaining > 1 and requested >= self.limits.token_budget:
                remaining = 0
            elif remaining > 1:
                if sequence.computed % self.pool.block_size == 0 and sequence.computed < sequence.first_output:
                    self._count_cached(job, self._sequences.reuse_prefix(sequence))
                    remaining = sequence.remaining
                key = self._sequences.next_key(sequence)
                if key is not None:
                    claimed = claims.setdefault((key[0], key[1][0]), [])
                    if any(worth_waiting_for(tokens, key[1]) for tokens in claimed):
                        remaining = 0
                    else:
                        claimed.append(key[1])
                requested += remaining
            left.append(remaining)
        roomy = self._is_roomy()
        return [
            SequenceDemand(
                remaining,
                spare_tokens=len(job.sequence.blocks) * self.pool.block_size - job.sequence.computed,
                exclusive_blocks=0 if roomy else self.pool.count_exclusive(job.sequence.blocks),
            )
            for job, remaining in zip(self._running, left, strict=True)
        ]

    def _is_roomy(self) -> bool:
        """A sequence takes at most one block more than its tokens fill: with so many blocks none is preempted."""
        return self.pool.available_blocks >= (2 * len(self._running) + self.limits.token_budget // self.pool.block_size)

    def _sample(self, jobs: list[EngineJob], spans: list[SequenceSpan], outputs: list[int], hidden_NE: Tensor) -> None:
        """`outputs` says how many of each span's last rows need logits."""
        rows = [
            at
            for span, count in zip(spans, outputs, strict=True)
            for at in range(span.start + span.count - count, span.start + span.count)
        ]
        if not rows:
            return
        logits_MV = self.decoder.logits(hidden_NE[upload(rows, hidden_NE.device)])
        sampling: list[tuple[GenerateJob, int]] = []
        at = 0
        for job, count in zip(jobs, outputs, strict=True):
            if isinstance(job, GenerateJob) and count:
                sampling.append((job, at))
            elif isinstance(job, ScoreJob) and count:
                self._score(job, logits_MV[at : at + count])
            at += count
        if sampling:
            if len(sampling) < len(rows):
                logits_MV = logits_MV[upload([at for _, at in sampling], logits_MV.device)]
            self._sample_jobs([job for job, _ in sampling], logits_MV)

    def _sample_jobs(self, jobs: list[GenerateJob], logits_MV: Tensor) -> None:
        seeds_M = upload([job.seed for job in jobs], logits_MV.device)
        positions_M = upload([len(job.sequence.ids) for job in jobs], logits_MV.device)
        samplings = [job.sampling for job in jobs]
        logits_MV = _constrained(jobs, logits_MV)
        sampled = sample_tokens(logits_MV, samplings, uniform(seeds_M, positions_M))
        for job in jobs:
            if not job.logprobs:
                self._sequences.share_partial_block(job.sequence)
        self._sampled.append(_SampledTokens(jobs, self.version, Download(sampled)))

    def _add_sampled(self, sampled: _SampledTokens) -> None:
        tokens_M, logprobs_M = sampled.tokens_and_logprobs.wait()
        self.stats.sampled_tokens += len(sampled.jobs)
        for job, token, logprob in zip(sampled.jobs, tokens_M.tolist(), logprobs_M.tolist(), strict=True):
            reason = job.append_sampled([token], [logprob], sampled.version)
            if reason:
                self._end(job, reason)

    def _score(self, job: ScoreJob, logits_CV: Tensor) -> None:
        begin = job.start + len(job.logprobs)
        chosen_C = torch.tensor(job.ids[begin : begin + len(logits_CV)], device=logits_CV.device)
        job.append_scored(token_logprobs(logits_CV, chosen_C, [job.sampling] * len(logits_CV)).tolist())
        if job.sequence.remaining == 0:
            self._end(job, "stop")

    def _end(self, job: EngineJob, reason: FinishReason) -> None:
        self._sequences.release(job.sequence)
        (self._running if job in self._running else self._waiting).remove(job)
        job.finish(reason)

    def _count_cached(self, job: EngineJob, tokens: int) -> None:
        if not job.interrupted:
            job.cached_tokens += tokens
        self.stats.cached_tokens += tokens
        self.stats.fetched_blocks = self._sequences.offload.fetched_blocks

    @property
    def _oldest(self) -> int:
        return self.version - self.limits.max_staleness


def _constrained(jobs: Sequence[GenerateJob], logits_MV: Tensor) -> Tensor:
    """Apply the grammars; a job at a dead end of its grammar goes on without it."""
    if not any(job.matcher for job in jobs):
        return logits_MV
    stop_ids = [job.request.stop_ids for job in jobs]
    logits_MV, constrained = mask_logits(logits_MV, [job.matcher for job in jobs], stop_ids)
    for job, held in zip(jobs, constrained, strict=True):
        if not held:
            job.matcher = None
    return logits_MV
