"""The engine as the harness sees it: requests come from an event loop, a thread of its own steps the batch."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from gametape.core.messages import GenerateRequest, Generation, Sampling, WeightUpdate
from gametape.engines.base_engine import BaseEngine
from gametape.engines.errors import EngineError
from gametape.engines.torch.grammar import GrammarCompiler, GrammarMatcher
from gametape.engines.torch.jobs import EngineJob, GenerateJob, ScoreJob
from gametape.engines.torch.request_checks import admission_error, check_ids, check_score_range
from gametape.engines.torch.stepper import EngineStats, Stepper
from gametape.engines.torch.weights import StandbyWeights, Weights, load_weights, match_weights

T = TypeVar("T")


class TorchEngine(BaseEngine):
    """An `Engine` over a `Stepper`. Keys and values of what has been read are kept until their room is needed.

    The weights are those of the decoder's module. A trainer in the same process changes them inside `changing`, and
    nothing is copied. One that works beside it or elsewhere publishes tensors (`publish`) or a directory
    (`update_weights`). With a `shadow` these are written while decoding goes on, and only the swap is between two
    steps; without one they are copied in between two steps.
    """

    def __init__(
        self, stepper: Stepper, grammars: GrammarCompiler | None = None, standby: StandbyWeights | None = None
    ) -> None:
        """Without `grammars` no request is held to one, and its generation says so."""
        self._stepper = stepper
        self._grammars = grammars
        self._shadow = standby
        self._publishing = asyncio.Lock()
        self._arrivals = count()
        self._errands: list[Callable[[], None]] = []
        self._pending: set[asyncio.Future[Any]] = set()
        self._wake = threading.Condition()
        self._closing = False
        self._worker = threading.Thread(target=self._work, name="torch-engine", daemon=True)
        self._worker.start()

    async def generate(self, request: GenerateRequest) -> Generation:
        check_ids(self._stepper, request.prompt_ids)
        matcher: GrammarMatcher | None = None
        if request.grammar is not None and self._grammars:
            matcher = await asyncio.to_thread(self._grammars.matcher, request.grammar)
        return await self._asked(
            lambda told, arrival: GenerateJob(request, told, arrival, matcher), request.min_policy_version
        )

    async def score(self, ids: Sequence[int], start: int = 1, sampling: Sampling = Sampling()) -> list[float]:  # noqa: B008 - frozen
        """How likely each id from `start` on was in the distribution that `sampling` states, given those before."""
        check_score_range(self._stepper, ids, start)
        scored: list[float] | None = await self._asked(
            lambda told, arrival: ScoreJob(list(ids), start, sampling, told, arrival)
        )
        if scored is None:
            raise EngineError("cut_stream", "the engine was closed")
        return scored

    async def update_weights(self, update: WeightUpdate) -> None:
        weights = await asyncio.to_thread(load_weights, Path(update.location))
        await self.publish(update.policy_version, weights)

    async def publish(self, version: int, weights: Weights) -> None:
        """Take over these weights, all of them or none; they must not change until this returns.

        Whoever gives up waiting does not stop it half-way.
        """
        await asyncio.shield(self._publish(version, weights))

    async def _publish(self, version: int, weights: Weights) -> None:
        async with self._publishing:
            if self._shadow:
                await asyncio.to_thread(self._shadow.write, weights)
                await self._answered(partial(_swap, self._shadow, version))
            else:
                pairs = match_weights(self._stepper.decoder.module, weights)
                async with self.pause_for_update(version):
                    await asyncio.to_thread(pairs.copy)

    @asynccontextmanager
    async def pause_for_update(self, version: int) -> AsyncIterator[None]:
        """No step runs inside, so the module's parameters may be changed in place; they are `version` afterwards."""
        loop = asyncio.get_running_loop()
        reached: asyncio.Future[None] = loop.create_future()
        over: asyncio.Future[None] = loop.create_future()
        go_on = threading.Event()
        changed = False

        def hold() -> None:
            _tell(reached, None)
            go_on.wait()
            if changed:
                self._stepper.weights_changed(version)
            _tell(over, None)

        self._pending.add(reached)
        try:
            self._errand(hold)
            await reached
            changed = True
            yield
        finally:
            self._pending.discard(reached)
            go_on.set()
        await over

    async def policy_version(self) -> int:
        return self._stepper.version

    def weights_changed(self, version: int) -> None:
        """The trainer has changed the tensors in place; holds for every request that is made after this call.

        Nothing may run while they are changed: `pause_for_update` sees to that.
        """
        self._errand(lambda: self._stepper.weights_changed(version))

    def forget(self) -> None:
        """Drop what was read before; holds for every request that is made after this call."""
        self._errand(self._stepper.clear_cache)

    async def stats(self) -> EngineStats:
        return await self._answered(lambda answer: _tell(answer, replace(self._stepper.stats)))

    async def close(self) -> None:
        """End what is running, as cancelled, and the thread; the weights go with the object."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.to_thread(self._worker.join)

    async def _answered(self, errand: Callable[["asyncio.Future[T]"], None]) -> T:
        """Have something done on the worker's thread, and wait until it settles the answer."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending.add(answer)
        try:
            self._errand(lambda: errand(answer))
            return await answer
        finally:
            self._pending.discard(answer)

    async def _asked(self, made: Callable[[Callable[[T], None], int], EngineJob], min_version: int = 0) -> T:
        arrival = next(self._arrivals)

        def add(answer: "asyncio.Future[T]") -> None:
            job = made(lambda result: _tell(answer, result), arrival)
            if trouble := admission_error(self._stepper, job, min_version):
                _tell(answer, trouble)
            else:
                self._stepper.add(job)

        try:
            return await self._answered(add)
        except asyncio.CancelledError:
            self._errand(lambda: self._stepper.cancel(arrival))
            raise

    def _errand(self, errand: Callable[[], None]) -> None:
        with self._wake:
            if self._closing:
                raise EngineError("refused", "the engine is closed")
            self._errands.append(errand)
            self._wake.notify()

    def _work(self) -> None:
        try:
            while not self._closing:
                with self._wake:
                    self._wake.wait_for(lambda: self._errands or self._closing or self._stepper.busy)
                    errands, self._errands = self._errands, []
                for errand in errands:
                    errand()
                if self._stepper.busy:
                    self._stepper.step(lambda: bool(self._errands) or self._closing)
            self._stepper.cancel_all()
            self._give_up(EngineError("refused", "the engine was closed"))
        except BaseException as error:
            with self._wake:
                self._closing = True
            self._give_up(EngineError("server_error", f"the engine broke down: {error}"))
            raise

    def _give_up(self, why: EngineError) -> None:
        """Whoever has no answer yet will not get one."""
        for answer in list(self._pending):
            _tell(answer, why)


def _swap(shadow: StandbyWeights, version: int, done: "asyncio.Future[None]") -> None:
    shadow.swap(version)
    _tell(done, None)


def _tell(answer: "asyncio.Future[T]", result: T | EngineError) -> None:
    """From the worker's thread; a loop that has been closed has nobody left to tell."""
    loop = answer.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(_settle, answer, result)


def _settle(answer: "asyncio.Future[Any]", result: Any) -> None:
    if answer.done():
        return
    if isinstance(result, EngineError):
        answer.set_exception(result)
    else:
        answer.set_result(result)
