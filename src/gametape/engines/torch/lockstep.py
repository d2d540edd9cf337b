"""The engine for synchronous training: it steps only when all participants wait for it, so results are deterministic.

An engine with a thread of its own batches whatever has arrived, which depends on the clock; sums in another order then
differ in the last bit. Here a step is taken when every participant waits for its answer, on the event loop's own
thread, and new requests are added in the order of their names.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from operator import itemgetter
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
    """A `PolicyEngine` over a `Stepper`, without a thread. A rollout is inside `participant` while it may ask again.

    The weights are the trainer's own tensors: it changes them while nobody waits, and calls `weights_changed`.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._participants = 0
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._new: list[tuple[str, EngineJob]] = []
        self._arrivals = 0
        self._score_names = count()
        self._scheduled = False

    @property
    def stepper(self) -> Stepper:
        return self._stepper

    @contextmanager
    def participant(self) -> Iterator[None]:
        """Inside, no step is taken unless this participant waits for its answer too."""
        self._participants += 1
        try:
            yield
        finally:
            self._participants -= 1
            self._schedule()

    async def generate(self, request: GenerateRequest) -> Generation:
        check_ids(self._stepper, request.prompt_ids)
        name = request.request_id
        job = GenerateJob(request, partial(self._set_result, name), 0)
        generation: Generation = await self._run_job(name, job, request.min_policy_version)
        return generation

    async def score(self, ids: Sequence[int], start: int = 1, sampling: Sampling = Sampling()) -> list[float]:  # noqa: B008 - frozen
        """The log-probability of each id from `start` on, given those before, in the distribution of `sampling`."""
        check_score_range(self._stepper, ids, start)
        name = f"score/{next(self._score_names):012}"
        job = ScoreJob(list(ids), start, sampling, partial(self._set_result, name), 0)
        scored: list[float] = await self._run_job(name, job)
        return scored

    def weights_changed(self, version: int) -> None:
        """The trainer has changed the tensors; keys and values of the old ones are not used again."""
        self._stepper.weights_changed(version)

    def forget(self) -> None:
        """Drop all cached keys and values, so that a run that is resumed here computes the same numbers."""
        self._stepper.clear_cache()

    async def update_weights(self, update: WeightUpdate) -> None:
        pairs = match_weights(self._stepper.decoder.module, load_weights(Path(update.location)))
        pairs.copy()
        self.weights_changed(update.policy_version)

    async def policy_version(self) -> int:
        return self._stepper.version

    async def close(self) -> None:
        self._stepper.cancel_all()

    async def _run_job(self, name: str, job: EngineJob, min_version: int = 0) -> Any:
        if error := admission_error(self._stepper, job, min_version):
            raise error
        if name in self._waiting:
            raise BadInput(f"a request named {name} is under way already")
        self._waiting[name] = answer = asyncio.get_running_loop().create_future()
        self._new.append((name, job))
        self._schedule()
        try:
            return await answer
        except asyncio.CancelledError:
            self._new = [(other, new) for other, new in self._new if new is not job]
            self._stepper.cancel(job.arrival)
            raise
        finally:
            self._waiting.pop(name, None)

    def _set_result(self, name: str, result: Any) -> None:
        answer = self._waiting.pop(name, None)
        if answer and not answer.done():
            answer.set_result(result)

    def _schedule(self) -> None:
        """Step soon, if all participants wait; others that are about to ask get the chance to."""
        if not self._scheduled and self._waiting and len(self._waiting) >= self._participants:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._advance)

    def _advance(self) -> None:
        """Step until a request has its answer, or there is a new participant."""
        self._scheduled = False
        for _, job in sorted(self._new, key=itemgetter(0)):
            self._arrivals += 1
            job.arrival = self._arrivals
            self._stepper.add(job)
        self._new = []
        waiting = len(self._waiting)
        try:
            while self._stepper.busy and len(self._waiting) == waiting >= self._participants:
                self._stepper.step()
        except Exception as error:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(EngineError("server_error", f"the engine broke down: {error}"))
            raise
        self._schedule()
