"""One step of the engine after the other, without threads or clocks: admit, decide, read, sample."""

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor

from gametape.engines.torch.attention.seam import Planner, Span
from gametape.engines.torch.attic import Attic
from gametape.engines.torch.blocks import BlockPool
from gametape.engines.torch.constraining import held
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.jobs import Continue, Finish, Job, Score
from gametape.engines.torch.prefixes import PrefixIndex
from gametape.engines.torch.rounds import Drawn, Recorded, Rounds
from gametape.engines.torch.sampling import draw, logprobs, uniform
from gametape.engines.torch.scheduler import Want, decide
from gametape.engines.torch.slots import Slots, alike


@dataclass(frozen=True)
class Limits:
    """`slots` sequences at a time, `budget` tokens per step, and keys and values at most `staleness` versions old.

    `offload_blocks` of what has to leave the device are kept in the host's memory.
    """

    slots: int = 64
    budget: int = 512
    staleness: int = 0
    offload_blocks: int = 0


@dataclass
class Stats:
    """What has been done so far."""

    steps: int = 0
    read: int = 0
    sampled: int = 0
    cached: int = 0
    """Tokens that did not have to be read."""
    fetched: int = 0
    """Blocks that came back from the host's memory."""
    stopped: int = 0
    """How often a sequence had to let go of its blocks for an older one."""


class Stepper:
    """The engine's state. Everything here happens on one thread, between two steps or in one."""

    def __init__(
        self, decoder: Decoder, pool: BlockPool, planner: Planner, limits: Limits, recorded: Recorded | None = None
    ) -> None:
        """Where there are recorded steps, whoever decodes does so in rounds, and only prompts are read here."""
        self.decoder, self.pool, self.limits = decoder, pool, limits
        self.stats = Stats()
        self.version = 0
        self._planner = planner
        self._slots = Slots(pool, PrefixIndex(pool), Attic(pool, limits.offload_blocks))
        self._rounds = Rounds(recorded, self._slots) if recorded else None
        self._waiting: list[Job] = []
        self._running: list[Job] = []

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running)

    @property
    def recorded(self) -> bool:
        """Whether some steps have been recorded, with the addresses of the weights in them."""
        return self._rounds is not None

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
            self._slots.crop(job.slot, self._slots.fresh_blocks(job.slot, self._oldest))
        self._slots.forget_older(self._oldest)
        for job in (*self._waiting, *self._running):
            if isinstance(job, Score):
                job.begin()

    def forget(self) -> None:
        """Whatever nobody holds is not found again: what comes next does not depend on what came before."""
        self._slots.forget_older(self.version + 1)

    def step(self, pressing: Callable[[], bool] = lambda: False) -> None:
        """Read what was decided on, and sample for those that have been read to the end.

        Rounds follow each other until the caller is pressed for time, or somebody waits and there is a place.
        """
        self._admit()
        stepped: list[tuple[Job, int]] = []
        steady: list[Continue] = []
        for job, count in self._granted():
            if self._rounds and self._rounds.takes(job):
                steady.append(job)
            else:
                stepped.append((job, count))
        with torch.inference_mode():
            if stepped:
                self._run(stepped)
            if self._rounds and steady:
                self._run_rounds(self._rounds, steady, [job for job, _ in stepped], pressing)

    def _run_rounds(
        self, rounds: Rounds, steady: list[Continue], read: Sequence[Job], pressing: Callable[[], bool]
    ) -> None:
        """Prompts that have been read to their end join those that decode already, if there is room."""
        ready = [job for job in read if job.slot.blocks and rounds.takes(job)]
        if rounds.fit([*steady, *ready]):
            steady += ready
        places = len(self._running)
        for drawn in rounds.run(
            steady,
            self.version,
            short=len(steady) < places,
            pressing=lambda: pressing() or bool(self._waiting and len(self._running) < places),
        ):
            self._took(steady, drawn)

    def _took(self, jobs: Sequence[Continue], drawn: Sequence[Drawn]) -> None:
        """What a round gave; a job that had ended before drew nothing."""
        self.stats.steps += max(len(each.ids) for each in drawn)
        for job, each in zip(jobs, drawn, strict=True):
            if each.ids:
                self.stats.read += len(each.ids)
                self.stats.sampled += len(each.ids)
                reason = job.sampled(each.ids, each.logprobs, self.version)
                self._slots.advance(job.slot, len(each.ids))
                if reason:
                    self._end(job, reason)

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
                cached = self._slots.catch_up(job.slot, fetch=False)
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
        claims: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        left: list[int] = []
        asked = 0
        for job in self._running:
            slot, remaining = job.slot, job.slot.remaining
            if remaining > 1 and asked >= self.limits.budget:
                remaining = 0
            elif remaining > 1:
                if slot.computed % self.pool.block == 0 and slot.computed < slot.wanted:
                    self._count_cached(job, self._slots.catch_up(slot))
                    remaining = slot.remaining
                key = self._slots.next_key(slot)
                if key is not None:
                    claimed = claims.setdefault((key[0], key[1][0]), [])
                    if any(alike(tokens, key[1]) for tokens in claimed):
                        remaining = 0
                    else:
                        claimed.append(key[1])
                asked += remaining
            left.append(remaining)
        # Whoever is granted tokens takes at most a block more than those fill: then nobody has to let go.
        roomy = self.pool.available >= 2 * len(self._running) + self.limits.budget // self.pool.block
        return [
            Want(
                remaining,
                spare=len(job.slot.blocks) * self.pool.block - job.slot.computed,
                alone=0 if roomy else self.pool.alone(job.slot.blocks),
            )
            for job, remaining in zip(self._running, left, strict=True)
        ]

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
        logits_MV = _constrained(jobs, logits_MV)
        tokens_M, logprobs_M = draw(logits_MV, samplings, uniform(seeds_M, positions_M))
        self.stats.sampled += len(jobs)
        for job, token, logprob in zip(jobs, tokens_M.tolist(), logprobs_M.tolist(), strict=True):
            if not job.logprobs:
                self._slots.share_beginning(job.slot)
            reason = job.sampled([token], [logprob], self.version)
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
        self.stats.fetched = self._slots.attic.fetched

    @property
    def _oldest(self) -> int:
        return self.version - self.limits.staleness


def _constrained(jobs: Sequence[Continue], logits_MV: Tensor) -> Tensor:
    """A job at a dead end of its grammar goes on without it."""
    if not any(job.matcher for job in jobs):
        return logits_MV
    logits_MV, obeyed = held(logits_MV, [job.matcher for job in jobs], [job.request.stop_ids for job in jobs])
    for job, obeys in zip(jobs, obeyed, strict=True):
        if not obeys:
            job.matcher = None
    return logits_MV
