"""A rollout source in a process of its own: it samples while the learner learns, with weights a few versions old.

The two processes share memory for two copies of the weights: one is read while the other may be written. Everything
else is small messages. On a cluster the same messages go to other machines.
"""

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.engines.torch.device import choose_placement
from gametape.record.parent_watch import end_with_peer
from gametape.train.activity import ActivityClock, ActivityReport
from gametape.train.algorithms import make_algorithm
from gametape.train.policy import load_policy
from gametape.train.prompts import PromptDataset, open_prompt_dataset
from gametape.train.rollouts import PromptRequest, RolloutGroup, Weights
from gametape.train.sources import ConcurrentSource, RolloutWorker, training_limits

Buffers = tuple[dict[str, Tensor], dict[str, Tensor]]

_SECONDS_TO_END = 2.0
_SECONDS_BETWEEN_REPORTS = 0.5
_THREADS = 64
"""For what rollouts wait for."""


@dataclass(frozen=True)
class _WeightsReady:
    """Weights of a version lie in this buffer."""

    version: int
    buffer: int


@dataclass(frozen=True)
class _Expected:
    """Requests that will probably come next."""

    requests: tuple[PromptRequest, ...]


@dataclass(frozen=True)
class _AnnotatorState:
    """What the coach of an earlier process knew."""

    state: Mapping[str, Any]


_Order = PromptRequest | _WeightsReady | _AnnotatorState | _Expected


@dataclass(frozen=True)
class _Finished:
    """A group, and what its coach knows after it."""

    group: RolloutGroup
    annotator: Mapping[str, Any]


@dataclass(frozen=True)
class SamplerFailure:
    """The sampling process ended, for this reason."""

    reason: str
    refused: int = 0
    """The exit code for it, where the process refused to begin or to go on and said so itself."""


class SamplerEnded(GametapeError):
    """The process that samples rollouts has ended. What it refused is told as it would be in this process."""

    def __init__(self, failure: SamplerFailure) -> None:
        ended = f"the process that samples rollouts ended: {failure.reason}; --resume goes on"
        super().__init__(failure.reason if failure.refused else ended)
        self.exit_code = failure.refused or 3


class AsyncSource:
    """A `PolicySource`. At most two versions of weights are on their way; a third waits until the first has been
    read."""

    def __init__(self, config: RunConfig, start: Path, home: Path, weights: Weights) -> None:
        self._buffers: Buffers = (_shared(weights), _shared(weights))
        self._free = [threading.Event(), threading.Event()]
        for event in self._free:
            event.set()
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_sampler_main,
            args=(theirs, config.model_dump_json(), str(start), str(home), self._buffers),
            daemon=True,
        )
        self._process.start()
        theirs.close()
        self._loop = asyncio.get_running_loop()
        self._finished: asyncio.Queue[_Finished | SamplerFailure] = asyncio.Queue()
        self._annotator_state: Mapping[str, Any] = {}
        self._reports: list[ActivityReport] = []
        self.in_flight = 0
        threading.Thread(target=self._listen, daemon=True, name="rollouts").start()

    def order(self, request: PromptRequest) -> None:
        self._send(request)

    def expect(self, requests: Sequence[PromptRequest]) -> None:
        self._send(_Expected(tuple(requests)))

    async def take(self) -> RolloutGroup:
        """The next that is finished, whichever was ordered first."""
        return self._taken(await self._finished.get())

    def finished(self) -> list[RolloutGroup]:
        groups = []
        while not self._finished.empty():
            message = self._finished.get_nowait()
            if isinstance(message, SamplerFailure):
                self._finished.put_nowait(message)
                break
            groups.append(self._taken(message))
        return groups

    def take_activity(self) -> Sequence[ActivityReport]:
        reports, self._reports = self._reports, []
        return reports

    def annotator_state(self) -> Mapping[str, Any]:
        return self._annotator_state

    def restore_annotator(self, state: Mapping[str, Any]) -> None:
        self._annotator_state = state
        self._send(_AnnotatorState(state))

    async def publish(self, version: int, weights: Weights) -> None:
        buffer = version % 2
        await asyncio.to_thread(self._free[buffer].wait)
        self._free[buffer].clear()
        for name, tensor in weights.items():
            self._buffers[buffer][name].copy_(tensor.detach())
        self._send(_WeightsReady(version, buffer))

    async def close(self) -> None:
        self._send(None)
        await asyncio.to_thread(self._process.join, 10)
        if self._process.is_alive():
            self._process.kill()

    def _taken(self, message: _Finished | SamplerFailure) -> RolloutGroup:
        """A group that is handed out, and with it what its coach has learned."""
        if isinstance(message, SamplerFailure):
            self._finished.put_nowait(message)
            raise SamplerEnded(message)
        self._annotator_state = message.annotator
        return message.group

    def _send(self, message: "_Order | None") -> None:
        try:
            self._pipe.send(message)
        except OSError:
            self._put(SamplerFailure("its pipe is closed"))

    def _listen(self) -> None:
        try:
            while True:
                message = self._pipe.recv()
                if isinstance(message, _WeightsReady):
                    self._free[message.buffer].set()
                else:
                    self._put(message)
        except (EOFError, OSError):
            self._process.join(_SECONDS_TO_END)
            self._put(SamplerFailure(f"exit code {self._process.exitcode}"))
            for event in self._free:
                event.set()

    def _put(self, message: _Finished | ActivityReport | SamplerFailure) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._receive, message)

    def _receive(self, message: _Finished | ActivityReport | SamplerFailure) -> None:
        if isinstance(message, ActivityReport):
            self._reports.append(message)
            self.in_flight = message.in_flight
        else:
            self._finished.put_nowait(message)


def _shared(weights: Weights) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True).share_memory_() for name, tensor in weights.items()}


def _sampler_main(pipe: Connection, config: str, start: str, home: str, buffers: Buffers) -> None:
    """The main function of the sampling process."""
    end_with_peer(pipe.fileno())
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    try:
        asyncio.run(_run_sampler(pipe, RunConfig.model_validate_json(config), Path(start), Path(home), buffers))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
    except GametapeError as error:
        pipe.send(SamplerFailure(str(error), error.exit_code))
    except Exception as error:
        pipe.send(SamplerFailure(f"{type(error).__name__}: {error}"))
        raise


async def _run_sampler(pipe: Connection, config: RunConfig, start: Path, home: Path, buffers: Buffers) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "rollouts"))
    clock = ActivityClock()
    async with open_prompt_dataset(config, home, clock) as dataset:
        await _Sampler(pipe, config, start, dataset, buffers, clock).run()


class _Sampler:
    """A `ConcurrentSource` on weights of its own, which takes orders from a pipe and sends what is finished."""

    def __init__(
        self,
        pipe: Connection,
        config: RunConfig,
        start: Path,
        dataset: PromptDataset,
        buffers: Buffers,
        clock: ActivityClock,
    ) -> None:
        self._pipe, self._buffers, self._clock = pipe, buffers, clock
        self._policy = load_policy(start, choose_placement(config.device, config.dtype))
        model = self._policy.sampler(config.rl.max_staleness, threaded=True, clock=self._clock)
        self._engine = model.engine
        algorithm = make_algorithm(config)
        worker = RolloutWorker(model, dataset, config, self._clock, algorithm.reward)
        self._source = ConcurrentSource(worker, algorithm.make_annotator(model, training_limits(config)))
        self._messages: asyncio.Queue[_Order | None] = asyncio.Queue()

    async def run(self) -> None:
        """Until the pipe is closed, or anything goes wrong."""
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
        message = None
        while True:
            with suppress(EOFError, OSError):
                message = self._pipe.recv()
            loop.call_soon_threadsafe(self._messages.put_nowait, message)
            if message is None:
                return
            message = None

    async def _obey(self) -> None:
        """Orders are taken as they come; weights are copied between two steps of the engine."""
        while (message := await self._messages.get()) is not None:
            if isinstance(message, PromptRequest):
                self._source.order(message)
            elif isinstance(message, _Expected):
                self._source.expect(message.requests)
            elif isinstance(message, _AnnotatorState):
                self._source.restore_annotator(message.state)
            else:
                async with self._engine.pause_for_update():
                    await asyncio.to_thread(self._policy.load_weights, self._buffers[message.buffer])
                    self._engine.weights_changed(message.version)
                self._pipe.send(message)

    async def _send_finished(self) -> None:
        while True:
            group = await self._source.take()
            self._pipe.send(_Finished(group, self._source.annotator_state() or {}))

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_REPORTS)
            self._pipe.send(self._clock.take(self._source.in_flight))
