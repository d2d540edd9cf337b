"""The embedded engine: requests come from an event loop, a thread of its own steps the batch."""

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
from gametape.core.protocols import PolicyEngine
from gametape.engines.errors import EngineError
from gametape.engines.torch.garbage import leave_out_what_is_there, look_at_all
from gametape.engines.torch.grammar import GrammarCompiler, GrammarMatcher
from gametape.engines.torch.jobs import EngineJob, GenerateJob, ScoreJob
from gametape.engines.torch.request_checks import admission_error, check_ids, check_score_range
from gametape.engines.torch.stepper import EngineStats, Stepper
from gametape.engines.torch.weights import StandbyWeights, Weights, load_weights, match_weights

T = TypeVar("T")


class TorchEngine(PolicyEngine):
    """A `PolicyEngine` over a `Stepper`. Computed keys and values are kept until their blocks are needed.

    The weights are those of the decoder's module. A trainer in the same process changes them inside `pause_for_update`,
    and nothing is copied. A trainer elsewhere publishes tensors (`publish`) or a directory (`update_weights`). With
    `standby` weights these are written while decoding goes on, and only the swap is between two steps; without, they
    are copied between two steps.
    """

    def __init__(
        self, stepper: Stepper, grammars: GrammarCompiler | None = None, standby: StandbyWeights | None = None
    ) -> None:
        """Without `grammars` no request is constrained, and its generation says so."""
        self._stepper = stepper
        self._grammars = grammars
        self._standby = standby
        self._publishing = asyncio.Lock()
        self._arrivals = count()
        self._commands: list[Callable[[], None]] = []
        self._pending: set[asyncio.Future[Any]] = set()
        self._wake = threading.Condition()
        self._answers = _Answers()
        self._closing = False
        if stepper.uses_graphs:
            leave_out_what_is_there()
        self._worker = threading.Thread(target=self._work, name="torch-engine", daemon=True)
        self._worker.start()

    async def generate(self, request: GenerateRequest) -> Generation:
        check_ids(self._stepper, request.prompt_ids)
        matcher: GrammarMatcher | None = None
        if request.grammar is not None and self._grammars:
            matcher = await asyncio.to_thread(self._grammars.matcher, request.grammar)
        return await self._run_job(
            lambda on_done, arrival: GenerateJob(request, on_done, arrival, matcher), request.min_policy_version
        )

    async def score(self, ids: Sequence[int], start: int = 1, sampling: Sampling = Sampling()) -> list[float]:  # noqa: B008 - frozen
        """The log-probability of each id from `start` on, given those before, in the distribution of `sampling`."""
        check_score_range(self._stepper, ids, start)
        scored: list[float] | None = await self._run_job(
            lambda on_done, arrival: ScoreJob(list(ids), start, sampling, on_done, arrival)
        )
        if scored is None:
            raise EngineError("cut_stream", "the engine was closed")
        return scored

    async def update_weights(self, update: WeightUpdate) -> None:
        weights = await asyncio.to_thread(load_weights, Path(update.location))
        await self.publish(update.policy_version, weights)

    async def publish(self, version: int, weights: Weights) -> None:
        """Take over these weights, all of them or none; they must not change until this returns.

        A caller that is cancelled does not stop it half-way.
        """
        await asyncio.shield(self._publish(version, weights))

    async def _publish(self, version: int, weights: Weights) -> None:
        async with self._publishing:
            if self._standby:
                await asyncio.to_thread(self._standby.write, weights)
                await self._call_worker(partial(self._swap, self._standby, version))
            else:
                pairs = match_weights(self._stepper.decoder.module, weights)
                async with self.pause_for_update(version):
                    await asyncio.to_thread(pairs.copy)

    @asynccontextmanager
    async def pause_for_update(self, version: int | None = None) -> AsyncIterator[None]:
        """No step runs inside, so the module's parameters may be changed in place; they are `version` afterwards.
        Without one the caller says it inside, with `weights_changed`, if they have changed at all."""
        loop = asyncio.get_running_loop()
        reached: asyncio.Future[None] = loop.create_future()
        resumed: asyncio.Future[None] = loop.create_future()
        resume = threading.Event()
        changed = False

        def hold() -> None:
            self._stepper.settle()
            self._answers.tell(reached, None)
            resume.wait()
            if changed and version is not None:
                self._stepper.weights_changed(version)
            self._answers.tell(resumed, None)

        self._pending.add(reached)
        try:
            self._submit(hold)
            await reached
            changed = True
            yield
        finally:
            self._pending.discard(reached)
            resume.set()
        await resumed

    async def policy_version(self) -> int:
        return self._stepper.version

    def weights_changed(self, version: int) -> None:
        """The trainer has changed the tensors in place; holds for every request that is made after this call.

        Nothing may run while they are changed: `pause_for_update` sees to that.
        """
        self._submit(lambda: self._stepper.weights_changed(version))

    def forget(self) -> None:
        """Drop what was read before; holds for every request that is made after this call."""
        self._submit(self._stepper.clear_cache)

    async def stats(self) -> EngineStats:
        return await self._call_worker(lambda answer: self._answers.tell(answer, replace(self._stepper.stats)))

    async def close(self) -> None:
        """Cancel the running requests and end the thread; the weights are freed with the object."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.to_thread(self._worker.join)

    async def _call_worker(self, command: Callable[["asyncio.Future[T]"], None]) -> T:
        """Run a command on the worker's thread, and wait until it sets the result of the future."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending.add(answer)
        try:
            self._submit(lambda: command(answer))
            return await answer
        finally:
            self._pending.discard(answer)

    async def _run_job(self, make_job: Callable[[Callable[[T], None], int], EngineJob], min_version: int = 0) -> T:
        arrival = next(self._arrivals)

        def add(answer: "asyncio.Future[T]") -> None:
            job = make_job(lambda result: self._answers.tell(answer, result), arrival)
            if error := admission_error(self._stepper, job, min_version):
                self._answers.tell(answer, error)
            else:
                self._stepper.add(job)

        try:
            return await self._call_worker(add)
        except asyncio.CancelledError:
            self._submit(lambda: self._stepper.cancel(arrival))
            raise

    def _submit(self, command: Callable[[], None]) -> None:
        with self._wake:
            if self._closing:
                raise EngineError("refused", "the engine is closed")
            self._commands.append(command)
        # What else this turn of the event loop asks for comes with it: a batch of requests is one batch here too, and
        # the worker does not contend with a loop that is still making them.
        try:
            asyncio.get_running_loop().call_soon(self._notify)
        except RuntimeError:  # no loop runs in this thread
            self._notify()

    def _notify(self) -> None:
        with self._wake:
            self._wake.notify()

    def _work(self) -> None:
        try:
            while not self._closing:
                with self._wake:
                    self._wake.wait_for(lambda: self._commands or self._closing or self._stepper.busy)
                    commands, self._commands = self._commands, []
                for command in commands:
                    command()
                if self._stepper.busy:
                    self._stepper.step(lambda: bool(self._commands) or self._closing)
            self._stepper.cancel_all()
            self._fail_pending(EngineError("refused", "the engine was closed"))
        except BaseException as error:
            with self._wake:
                self._closing = True
            self._fail_pending(EngineError("server_error", f"the engine broke down: {error}"))
            raise
        finally:
            if self._stepper.uses_graphs:
                look_at_all()

    def _fail_pending(self, error: EngineError) -> None:
        """Fail the requests that have no answer yet."""
        for answer in list(self._pending):
            self._answers.tell(answer, error)

    def _swap(self, standby: StandbyWeights, version: int, done: "asyncio.Future[None]") -> None:
        standby.swap(version)
        self._answers.tell(done, None)


class _Answers:
    """Results on their way from the worker's thread to the event loops that wait for them.

    Many requests end in the same round: the loop is woken once for all whose results are there by then, because each
    time the two threads take turns.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}

    def tell(self, answer: "asyncio.Future[T]", result: T | EngineError) -> None:
        """Set a result, from any thread; on a closed loop nobody waits for it."""
        loop = answer.get_loop()
        if loop.is_closed():
            return
        with self._lock:
            told = self._told.setdefault(loop, [])
            told.append((answer, result))
            first = len(told) == 1
        if first:
            loop.call_soon_threadsafe(self._deliver, loop)

    def _deliver(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            told = self._told.pop(loop, [])
        for answer, result in told:
            _settle(answer, result)


def _settle(answer: "asyncio.Future[Any]", result: Any) -> None:
    if answer.done():
        return
    if isinstance(result, EngineError):
        answer.set_exception(result)
    else:
        answer.set_result(result)
