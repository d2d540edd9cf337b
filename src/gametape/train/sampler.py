"""What a process that samples rollouts does, on weights of its own: it takes orders from a link and sends what is
finished. The other end may be in this machine or in another one."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.engines.torch.device import choose_placement
from gametape.train.activity import ActivityClock
from gametape.train.algorithms import make_algorithm
from gametape.train.policy import load_policy
from gametape.train.prompts import PromptDataset, open_prompt_dataset
from gametape.train.rollouts import PromptRequest, Weights
from gametape.train.sampler_messages import (
    ExpectedRequests,
    FinishedGroup,
    KnownToAnnotator,
    SamplerAnswer,
    SamplerFailure,
    SamplerOrder,
    WeightsReady,
)
from gametape.train.sources import ConcurrentSource, RolloutWorker, training_limits

_SECONDS_BETWEEN_REPORTS = 0.5
_THREADS = 64
"""For what rollouts wait for."""


class SamplerLink(Protocol):
    """What carries messages between a sampler and the process that trains."""

    def receive(self) -> SamplerOrder | None:
        """Wait for the next order; None ends the sampler."""
        ...

    def send(self, answer: SamplerAnswer) -> None: ...

    def read_weights(self, ready: WeightsReady) -> Weights: ...


def run_sampler(link: SamplerLink, config: RunConfig, start: Path, home: Path) -> None:
    """Sample until the link says that it is over. What goes wrong is told through the link."""
    try:
        asyncio.run(_run(link, config, start, home))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
    except GametapeError as error:
        link.send(SamplerFailure(str(error), error.exit_code))
    except Exception as error:
        link.send(SamplerFailure(f"{type(error).__name__}: {error}"))
        raise


async def _run(link: SamplerLink, config: RunConfig, start: Path, home: Path) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "rollouts"))
    clock = ActivityClock()
    async with open_prompt_dataset(config, home, clock) as dataset:
        await _Sampler(link, config, start, dataset, clock).run()


class _Sampler:
    """A `ConcurrentSource` at the end of a link."""

    def __init__(
        self, link: SamplerLink, config: RunConfig, start: Path, dataset: PromptDataset, clock: ActivityClock
    ) -> None:
        self._link, self._clock = link, clock
        self._policy = load_policy(start, choose_placement(config.device, config.dtype))
        model = self._policy.sampler(config.rl.max_staleness, threaded=True, clock=self._clock)
        self._engine = model.engine
        algorithm = make_algorithm(config)
        worker = RolloutWorker(model, dataset, config, self._clock, algorithm.reward)
        self._source = ConcurrentSource(worker, algorithm.make_annotator(model, training_limits(config)))
        self._orders: asyncio.Queue[SamplerOrder | None] = asyncio.Queue()

    async def run(self) -> None:
        """Until the link is closed, or anything goes wrong."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        tasks = [asyncio.ensure_future(work()) for work in (self._obey, self._send_finished, self._report)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await self._source.close()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        order = None
        while True:
            with suppress(EOFError, OSError):
                order = self._link.receive()
            loop.call_soon_threadsafe(self._orders.put_nowait, order)
            if order is None:
                return
            order = None

    async def _obey(self) -> None:
        """Orders are taken as they come; weights are copied between two steps of the engine."""
        while (order := await self._orders.get()) is not None:
            if isinstance(order, PromptRequest):
                self._source.order(order)
            elif isinstance(order, ExpectedRequests):
                self._source.expect(order.requests)
            elif isinstance(order, KnownToAnnotator):
                self._source.restore_annotator(order.state)
            else:
                weights = await asyncio.to_thread(self._link.read_weights, order)
                async with self._engine.pause_for_update():
                    await asyncio.to_thread(self._policy.load_weights, weights)
                    self._engine.weights_changed(order.version)
                self._link.send(order)

    async def _send_finished(self) -> None:
        while True:
            group = await self._source.take()
            self._link.send(FinishedGroup(group, self._source.annotator_state() or {}))

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_REPORTS)
            self._link.send(self._clock.take(self._source.in_flight))
