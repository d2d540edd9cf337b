"""The engine for synchronous training: it steps only when everybody waits for it, so a seed decides everything.

With a thread of its own an engine batches whatever has arrived, and what has arrived depends on the clock; sums in
another order then differ in the last bit. Here a step is taken when every player is waiting for its answer, on the
event loop's own thread, and new requests are taken up in the order of their names.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest, Generation, Sampling, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.engines.errors import EngineError
from gametape.engines.torch.jobs import EngineJob, GenerateJob, ScoreJob
from gametape.engines.torch.request_checks import admission_error, check_ids, check_score_range
from gametape.engines.torch.stepper import Stepper
from gametape.engines.torch.weights import load_weights, match_weights


class LockstepEngine(PolicyEngine):
    """An `Engine` over a `Stepper`, without a thread. Whoever will ask again soon says so with `player`.

    The weights are the trainer's own tensors: it changes them while nobody waits, and says so with `changed`.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._players = 0
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._new: list[tuple[str, EngineJob]] = []
        self._arrivals = 0
        self._scores = count()
        self._called = False

    @property
    def stepper(self) -> Stepper:
        return self._stepper

    @contextmanager
    def participant(self) -> Iterator[None]:
        """Inside, no step is taken unless this one waits for its answer too."""
        self._players += 1
        try:
            yield
        finally:
            self._players -= 1
            self._look()

    async def generate(self, request: GenerateRequest) -> Generation:
        check_ids(self._stepper, request.prompt_ids)
        answer: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        name = request.request_id
        job = GenerateJob(request, lambda told: self._tell(name, told), 0)
        generation: Generation = await self._answered(name, job, answer, request.min_policy_version)
        return generation

    async def score(self, ids: Sequence[int], start: int = 1, sampling: Sampling = Sampling()) -> list[float]:  # noqa: B008 - frozen
        """How likely each id from `start` on was in the distribution that `sampling` states, given those before."""
        check_score_range(self._stepper, ids, start)
        answer: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
        name = f"score/{next(self._scores):012}"
        job = ScoreJob(list(ids), start, sampling, lambda told: self._tell(name, told), 0)
        scored: list[float] = await self._answered(name, job, answer)
        return scored

    def weights_changed(self, version: int) -> None:
        """The trainer has changed the tensors; nothing that was computed with the old ones is used again."""
        self._stepper.weights_changed(version)

    def forget(self) -> None:
        """Begin as if nothing had been read before, so that whoever begins here later comes to the same numbers."""
        self._stepper.clear_cache()

    async def update_weights(self, update: WeightUpdate) -> None:
        pairs = match_weights(self._stepper.decoder.module, load_weights(Path(update.location)))
        pairs.copy()
        self.weights_changed(update.policy_version)

    async def policy_version(self) -> int:
        return self._stepper.version

    async def close(self) -> None:
        self._stepper.cancel_all()

    async def _answered(self, name: str, job: EngineJob, answer: "asyncio.Future[Any]", min_version: int = 0) -> Any:
        if trouble := admission_error(self._stepper, job, min_version):
            raise trouble
        if name in self._waiting:
            raise BadInput(f"a request named {name} is under way already")
        self._waiting[name] = answer
        self._new.append((name, job))
        self._look()
        try:
            return await answer
        except asyncio.CancelledError:
            self._new = [(other, new) for other, new in self._new if new is not job]
            self._stepper.cancel(job.arrival)
            raise
        finally:
            self._waiting.pop(name, None)

    def _tell(self, name: str, told: Any) -> None:
        answer = self._waiting.pop(name, None)
        if answer and not answer.done():
            answer.set_result(told)

    def _look(self) -> None:
        """Step soon, if everybody waits; whoever else is about to ask gets the chance to."""
        if not self._called and self._waiting and len(self._waiting) >= self._players:
            self._called = True
            asyncio.get_running_loop().call_soon(self._advance)

    def _advance(self) -> None:
        """Steps until somebody has an answer, or somebody new plays."""
        self._called = False
        for _, job in sorted(self._new, key=lambda named: named[0]):
            self._arrivals += 1
            job.arrival = self._arrivals
            self._stepper.add(job)
        self._new = []
        waiting = len(self._waiting)
        try:
            while self._stepper.busy and len(self._waiting) == waiting >= self._players:
                self._stepper.step()
        except Exception as error:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(EngineError("server_error", f"the engine broke down: {error}"))
            raise
        self._look()
