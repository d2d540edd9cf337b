"""One step of the engine after the other, without threads or clocks: admit, decide, read, sample."""

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor

from gametape.engines.torch.attention.interface import AttentionPlanner, SequenceSpan
from gametape.engines.torch.decode_rounds import DecodeRounds, DrawnTokens, GraphRunner
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.grammar import mask_logits
from gametape.engines.torch.jobs import EngineJob, FinishReason, GenerateJob, ScoreJob
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.kv_offload import KVOffload
from gametape.engines.torch.prefix_index import PrefixIndex
from gametape.engines.torch.sampler import sample_tokens, token_logprobs, uniform
from gametape.engines.torch.scheduler import SequenceDemand, schedule_step
from gametape.engines.torch.sequence_cache import SequenceCache, worth_waiting_for


@dataclass(frozen=True)
class EngineLimits:
    """`slots` sequences at a time, `budget` tokens per step, and keys and values at most `staleness` versions old.

    `offload_blocks` of what has to leave the device are kept in the host's memory.
    """

    max_sequences: int = 64
    token_budget: int = 512
    max_staleness: int = 0
    offload_blocks: int = 0


@dataclass
class EngineStats:
    """What has been done so far."""

    steps: int = 0
    read_tokens: int = 0
    sampled_tokens: int = 0
    cached_tokens: int = 0
    """Tokens that did not have to be read."""
    fetched_blocks: int = 0
    """Blocks that came back from the host's memory."""
    preempted: int = 0
    """How often a sequence had to let go of its blocks for an older one."""


class Stepper:
    """The engine's state. Everything here happens on one thread, between two steps or in one."""

    def __init__(
        self,
        decoder: Decoder,
        pool: BlockPool,
        planner: AttentionPlanner,
        limits: EngineLimits,
        runner: GraphRunner | None = None,
    ) -> None:
        """Where there are recorded steps, whoever decodes does so in rounds, and only prompts are read here."""
        self.decoder, self.pool, self.limits = decoder, pool, limits
        self.stats = EngineStats()
        self.version = 0
        self._planner = planner
        self._slots = SequenceCache(pool, PrefixIndex(pool), KVOffload(pool, limits.offload_blocks))
        self._rounds = DecodeRounds(runner, self._slots) if runner else None
        self._waiting: list[EngineJob] = []
        self._running: list[EngineJob] = []

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running)

    @property
    def uses_graphs(self) -> bool:
        """Whether some steps have been recorded, with the addresses of the weights in them."""
        return self._rounds is not None

    @property
    def capacity(self) -> int:
        """How many tokens one sequence may have at most."""
        return self.pool.block_count * self.pool.block_size

    def add(self, job: EngineJob) -> None:
        insort(self._waiting, job, key=attrgetter("arrival"))

    def cancel(self, arrival: int) -> None:
        """End a job, wherever it is; one that has ended already is no matter."""
        for job in [job for job in (*self._waiting, *self._running) if job.arrival == arrival]:
            self._end(job, "cancelled")

    def cancel_all(self) -> None:
        for job in (*self._waiting, *self._running):
            self._end(job, "cancelled")

    def weights_changed(self, version: int, decoder: Decoder | None = None) -> None:
        """In place, or with another decoder that takes over.

        Keys and values that are too old for the new version are read again; what is scored is scored anew.
        """
        self.version = version
        if decoder:
            self.decoder = decoder
        else:
            self.decoder.refresh()
        for job in self._running:
            job.interrupted = True
            self._slots.crop(job.sequence, self._slots.count_fresh_blocks(job.sequence, self._oldest))
        self._slots.drop_older_than(self._oldest)
        for job in (*self._waiting, *self._running):
            if isinstance(job, ScoreJob):
                job.restart()

    def clear_cache(self) -> None:
        """Whatever nobody holds is not found again: what comes next does not depend on what came before."""
        self._slots.drop_older_than(self.version + 1)

    def step(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Read what was decided on, and sample for those that have been read to the end.

        Rounds follow each other until the caller is pressed for time, or somebody waits and there is a place.
        """
        self._admit()
        stepped: list[tuple[EngineJob, int]] = []
        steady: list[GenerateJob] = []
        for job, count in self._granted():
            if self._rounds and self._rounds.accepts(job):
                steady.append(job)
            else:
                stepped.append((job, count))
        with torch.inference_mode():
            if stepped:
                self._run(stepped)
            if self._rounds and steady:
                self._run_rounds(self._rounds, steady, [job for job, _ in stepped], should_stop)

    def _run_rounds(
        self, rounds: DecodeRounds, steady: list[GenerateJob], read: Sequence[EngineJob], pressing: Callable[[], bool]
    ) -> None:
        """Prompts that have been read to their end join those that decode already, if there is room."""
        ready = [job for job in read if job.sequence.blocks and rounds.accepts(job)]
        if rounds.has_room([*steady, *ready]):
            steady += ready
        places = len(self._running)
        for drawn in rounds.run(
            steady,
            self.version,
            short=len(steady) < places,
            should_stop=lambda: pressing() or bool(self._waiting and len(self._running) < places),
        ):
            self._took(steady, drawn)

    def _took(self, jobs: Sequence[GenerateJob], drawn: Sequence[DrawnTokens]) -> None:
        """What a round gave; a job that had ended before drew nothing."""
        self.stats.steps += max(len(each.ids) for each in drawn)
        for job, each in zip(jobs, drawn, strict=True):
            if each.ids:
                self.stats.read_tokens += len(each.ids)
                self.stats.sampled_tokens += len(each.ids)
                reason = job.append_sampled(each.ids, each.logprobs, self.version)
                self._slots.advance(job.sequence, len(each.ids))
                if reason:
                    self._end(job, reason)

    def _run(self, granted: Sequence[tuple[EngineJob, int]]) -> None:
        spans, ids, wanted, start = [], [], [], 0
        for job, count in granted:
            slot = job.sequence
            self._slots.allocate(slot, count, self.version)
            spans.append(SequenceSpan(start, count, slot.computed, slot.blocks))
            ids += slot.ids[slot.computed : slot.computed + count]
            wanted.append(slot.computed + count - max(slot.first_output, slot.computed))
            start += count
        hidden_NE = self._read(ids, spans)
        for job, count in granted:
            self._slots.advance(job.sequence, count)
        self.stats.steps += 1
        self.stats.read_tokens += len(ids)
        self._sample([job for job, _ in granted], spans, [max(0, rows) for rows in wanted], hidden_NE)

    def _read(self, ids: list[int], spans: Sequence[SequenceSpan]) -> Tensor:
        device = self.decoder.device
        positions = [at for span in spans for at in range(span.past, span.past + span.count)]
        attend = self._planner(self.pool, spans)
        return self.decoder.forward(torch.tensor(ids, device=device), torch.tensor(positions, device=device), attend)

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.limits.max_sequences:
            job = self._waiting[0]
            if not job.sequence.blocks:
                cached = self._slots.reuse_prefix(job.sequence, fetch=False)
                if (
                    self._running
                    and self._slots.missing_blocks(job.sequence, job.sequence.remaining) + len(self._running)
                    > self.pool.available_blocks
                ):
                    self._slots.release(job.sequence)
                    return
                self._count_cached(job, cached)
            del self._waiting[0]
            insort(self._running, job, key=attrgetter("arrival"))

    def _granted(self) -> list[tuple[EngineJob, int]]:
        wants = self._wants()
        decision = schedule_step(wants, self.pool.available_blocks, self.pool.block_size, self.limits.token_budget)
        granted = [(job, count) for job, count in zip(self._running, decision.tokens, strict=True) if count]
        for at in decision.preempted:
            job = self._running.pop(at)
            self._slots.release(job.sequence)
            self.add(job)
            job.interrupted = True
            self.stats.preempted += 1
        return granted

    def _wants(self) -> list[SequenceDemand]:
        """A prompt that begins like one that is being read right now waits a step, to find it read."""
        claims: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        left: list[int] = []
        asked = 0
        for job in self._running:
            slot, remaining = job.sequence, job.sequence.remaining
            if remaining > 1 and asked >= self.limits.token_budget:
                remaining = 0
            elif remaining > 1:
                if slot.computed % self.pool.block_size == 0 and slot.computed < slot.first_output:
                    self._count_cached(job, self._slots.reuse_prefix(slot))
                    remaining = slot.remaining
                key = self._slots.next_key(slot)
                if key is not None:
                    claimed = claims.setdefault((key[0], key[1][0]), [])
                    if any(worth_waiting_for(tokens, key[1]) for tokens in claimed):
                        remaining = 0
                    else:
                        claimed.append(key[1])
                asked += remaining
            left.append(remaining)
        # Whoever is granted tokens takes at most a block more than those fill: then nobody has to let go.
        roomy = self.pool.available_blocks >= 2 * len(self._running) + self.limits.token_budget // self.pool.block_size
        return [
            SequenceDemand(
                remaining,
                spare_tokens=len(job.sequence.blocks) * self.pool.block_size - job.sequence.computed,
                exclusive_blocks=0 if roomy else self.pool.count_exclusive(job.sequence.blocks),
            )
            for job, remaining in zip(self._running, left, strict=True)
        ]

    def _sample(self, jobs: list[EngineJob], spans: list[SequenceSpan], wanted: list[int], hidden_NE: Tensor) -> None:
        """`wanted` says how many of each span's last rows are asked for."""
        rows = [
            at
            for span, count in zip(spans, wanted, strict=True)
            for at in range(span.start + span.count - count, span.start + span.count)
        ]
        if not rows:
            return
        logits_MV = self.decoder.logits(hidden_NE[torch.tensor(rows, device=hidden_NE.device)])
        drawing: list[tuple[GenerateJob, int]] = []
        at = 0
        for job, count in zip(jobs, wanted, strict=True):
            if isinstance(job, GenerateJob) and count:
                drawing.append((job, at))
            elif isinstance(job, ScoreJob) and count:
                self._score(job, logits_MV[at : at + count])
            at += count
        if drawing:
            self._draw(drawing, logits_MV if len(drawing) == len(rows) else logits_MV[[at for _, at in drawing]])

    def _draw(self, drawing: list[tuple[GenerateJob, int]], logits_MV: Tensor) -> None:
        jobs = [job for job, _ in drawing]
        seeds_M = torch.tensor([job.seed for job in jobs], device=logits_MV.device)
        positions_M = torch.tensor([len(job.sequence.ids) for job in jobs], device=logits_MV.device)
        samplings = [job.sampling for job in jobs]
        logits_MV = _constrained(jobs, logits_MV)
        tokens_M, logprobs_M = sample_tokens(logits_MV, samplings, uniform(seeds_M, positions_M))
        self.stats.sampled_tokens += len(jobs)
        for job, token, logprob in zip(jobs, tokens_M.tolist(), logprobs_M.tolist(), strict=True):
            if not job.logprobs:
                self._slots.share_partial_block(job.sequence)
            reason = job.append_sampled([token], [logprob], self.version)
            if reason:
                self._end(job, reason)

    def _score(self, job: ScoreJob, logits_CV: Tensor) -> None:
        begin = job.start + len(job.logprobs)
        chosen_C = torch.tensor(job.ids[begin : begin + len(logits_CV)], device=logits_CV.device)
        job.append_scored(token_logprobs(logits_CV, chosen_C, [job.sampling] * len(logits_CV)).tolist())
        if job.sequence.remaining == 0:
            self._end(job, "stop")

    def _end(self, job: EngineJob, reason: FinishReason) -> None:
        self._slots.release(job.sequence)
        (self._running if job in self._running else self._waiting).remove(job)
        job.finish(reason)

    def _count_cached(self, job: EngineJob, tokens: int) -> None:
        if not job.interrupted:
            job.cached_tokens += tokens
        self.stats.cached_tokens += tokens
        self.stats.fetched_blocks = self._slots.offload.fetched_blocks

    @property
    def _oldest(self) -> int:
        return self.version - self.limits.max_staleness


def _constrained(jobs: Sequence[GenerateJob], logits_MV: Tensor) -> Tensor:
    """A job at a dead end of its grammar goes on without it."""
    if not any(job.matcher for job in jobs):
        return logits_MV
    logits_MV, obeyed = mask_logits(logits_MV, [job.matcher for job in jobs], [job.request.stop_ids for job in jobs])
    for job, obeys in zip(jobs, obeyed, strict=True):
        if not obeys:
            job.matcher = None
    return logits_MV
