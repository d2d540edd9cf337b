"""One step of the engine after the other, without threads or clocks: admit, decide, read, sample."""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor

from gametape.engines.torch.attention.seam import Planner, Span
from gametape.engines.torch.blocks import BlockPool
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.jobs import Continue, Finish, Job, Score
from gametape.engines.torch.prefixes import PrefixIndex
from gametape.engines.torch.sampling import draw, logprobs, uniform
from gametape.engines.torch.scheduler import Want, decide
from gametape.engines.torch.slots import Slots, alike


@dataclass(frozen=True)
class Limits:
    """`slots` sequences at a time, `budget` tokens per step, and keys and values at most `staleness` versions old."""

    slots: int = 64
    budget: int = 512
    staleness: int = 0


@dataclass
class Stats:
    """What has been done so far."""

    steps: int = 0
    read: int = 0
    sampled: int = 0
    cached: int = 0
    """Tokens that did not have to be read."""
    stopped: int = 0
    """How often a sequence had to let go of its blocks for an older one."""


class Stepper:
    """The engine's state. Everything here happens on one thread, between two steps or in one."""

    def __init__(self, decoder: Decoder, pool: BlockPool, planner: Planner, limits: Limits) -> None:
        self.decoder, self.pool, self.limits = decoder, pool, limits
        self.stats = Stats()
        self.version = 0
        self._planner = planner
        self._slots = Slots(pool, PrefixIndex(pool))
        self._waiting: list[Job] = []
        self._running: list[Job] = []

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running)

    @property
    def capacity(self) -> int:
        """How many tokens one sequence may have at most."""
        return self.pool.blocks * self.pool.block

    def add(self, job: Job) -> None:
        insort(self._waiting, job, key=attrgetter("arrival"))

    def cancel(self, arrival: int) -> None:
        """End a job, wherever it is; one that has ended already is no matter."""
        for job in [job for job in (*self._waiting, *self._running) if job.arrival == arrival]:
            self._end(job, "cancelled")

    def end_all(self) -> None:
        for job in (*self._waiting, *self._running):
            self._end(job, "cancelled")

    def weights_changed(self, version: int) -> None:
        """Keys and values that are too old for the new version are read again; what is scored is scored anew."""
        self.version = version
        self.decoder.refresh()
        for job in self._running:
            job.interrupted = True
            self._slots.crop(job.slot, self._slots.fresh_blocks(job.slot, self._oldest))
        self._slots.index.forget_older(self._oldest)
        for job in (*self._waiting, *self._running):
            if isinstance(job, Score):
                job.begin()

    def step(self) -> None:
        """Read what was decided on, and sample for those that have been read to the end."""
        self._admit()
        granted = self._granted()
        if granted:
            with torch.inference_mode():
                self._run(granted)

    def _run(self, granted: Sequence[tuple[Job, int]]) -> None:
        spans, ids, wanted, start = [], [], [], 0
        for job, count in granted:
            slot = job.slot
            self._slots.make_room(slot, count, self.version)
            spans.append(Span(start, count, slot.computed, slot.blocks))
            ids += slot.ids[slot.computed : slot.computed + count]
            wanted.append(slot.computed + count - max(slot.wanted, slot.computed))
            start += count
        hidden_NE = self._read(ids, spans)
        for job, count in granted:
            self._slots.advance(job.slot, count)
        self.stats.steps += 1
        self.stats.read += len(ids)
        self._sample([job for job, _ in granted], spans, [max(0, rows) for rows in wanted], hidden_NE)

    def _read(self, ids: list[int], spans: Sequence[Span]) -> Tensor:
        device = self.decoder.device
        positions = [at for span in spans for at in range(span.past, span.past + span.count)]
        attend = self._planner(self.pool, spans)
        return self.decoder.forward(torch.tensor(ids, device=device), torch.tensor(positions, device=device), attend)

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self.limits.slots:
            job = self._waiting[0]
            if not job.slot.blocks:
                cached = self._slots.catch_up(job.slot)
                if (
                    self._running
                    and self._slots.missing(job.slot, job.slot.remaining) + len(self._running) > self.pool.available
                ):
                    self._slots.let_go(job.slot)
                    return
                self._count_cached(job, cached)
            del self._waiting[0]
            insort(self._running, job, key=attrgetter("arrival"))

    def _granted(self) -> list[tuple[Job, int]]:
        wants = self._wants()
        decision = decide(wants, self.pool.available, self.pool.block, self.limits.budget)
        granted = [(job, count) for job, count in zip(self._running, decision.tokens, strict=True) if count]
        for at in decision.stopped:
            job = self._running.pop(at)
            self._slots.let_go(job.slot)
            self.add(job)
            job.interrupted = True
            self.stats.stopped += 1
        return granted

    def _wants(self) -> list[Want]:
        """A prompt that begins like one that is being read right now waits a step, to find it read."""
        claims: dict[int, list[tuple[int, ...]]] = {}
        wants = []
        for job in self._running:
            slot, remaining = job.slot, job.slot.remaining
            if remaining > 1:
                if slot.computed % self.pool.block == 0 and slot.computed < slot.wanted:
                    self._count_cached(job, self._slots.catch_up(slot))
                    remaining = slot.remaining
                key = self._slots.next_key(slot)
                if key is not None:
                    claimed = claims.setdefault(key[0], [])
                    if any(alike(tokens, key[1]) for tokens in claimed):
                        remaining = 0
                    else:
                        claimed.append(key[1])
            spare = len(slot.blocks) * self.pool.block - slot.computed
            wants.append(Want(remaining, spare, self.pool.alone(slot.blocks)))
        return wants

    def _sample(self, jobs: list[Job], spans: list[Span], wanted: list[int], hidden_NE: Tensor) -> None:
        """`wanted` says how many of each span's last rows are asked for."""
        rows = [
            at
            for span, count in zip(spans, wanted, strict=True)
            for at in range(span.start + span.count - count, span.start + span.count)
        ]
        if not rows:
            return
        logits_MV = self.decoder.logits(hidden_NE[torch.tensor(rows, device=hidden_NE.device)])
        drawing: list[tuple[Continue, int]] = []
        at = 0
        for job, count in zip(jobs, wanted, strict=True):
            if isinstance(job, Continue) and count:
                drawing.append((job, at))
            elif isinstance(job, Score) and count:
                self._score(job, logits_MV[at : at + count])
            at += count
        if drawing:
            self._draw(drawing, logits_MV if len(drawing) == len(rows) else logits_MV[[at for _, at in drawing]])

    def _draw(self, drawing: list[tuple[Continue, int]], logits_MV: Tensor) -> None:
        jobs = [job for job, _ in drawing]
        seeds_M = torch.tensor([job.seed for job in jobs], device=logits_MV.device)
        positions_M = torch.tensor([len(job.slot.ids) for job in jobs], device=logits_MV.device)
        samplings = [job.sampling for job in jobs]
        tokens_M, logprobs_M = draw(logits_MV, samplings, uniform(seeds_M, positions_M))
        self.stats.sampled += len(jobs)
        for job, token, logprob in zip(jobs, tokens_M.tolist(), logprobs_M.tolist(), strict=True):
            if not job.logprobs:
                self._slots.share_beginning(job.slot)
            reason = job.sampled(token, logprob, self.version)
            if reason:
                self._end(job, reason)

    def _score(self, job: Score, logits_CV: Tensor) -> None:
        begin = job.start + len(job.logprobs)
        chosen_C = torch.tensor(job.ids[begin : begin + len(logits_CV)], device=logits_CV.device)
        job.scored(logprobs(logits_CV, chosen_C, [job.sampling] * len(logits_CV)).tolist())
        if job.slot.remaining == 0:
            self._end(job, "stop")

    def _end(self, job: Job, reason: Finish) -> None:
        self._slots.let_go(job.slot)
        (self._running if job in self._running else self._waiting).remove(job)
        job.finish(reason)

    def _count_cached(self, job: Job, tokens: int) -> None:
        if not job.interrupted:
            job.cached += tokens
        self.stats.cached += tokens

    @property
    def _oldest(self) -> int:
        return self.version - self.limits.staleness
