"""A rollout source in a process of its own: it samples while the learner learns, with weights a few versions old.

The two processes share memory for two copies of the weights: one is read while the other may be written. Everything
else is small messages. On a cluster the same messages go to other machines.
"""

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gametape.core.config import RunConfig
from gametape.record.parent_watch import end_with_peer
from gametape.train.activity import ActivityReport
from gametape.train.rollouts import PromptRequest, RolloutGroup, Weights
from gametape.train.sampler import run_sampler
from gametape.train.sampler_messages import (
    ExpectedRequests,
    FinishedGroup,
    KnownToAnnotator,
    SamplerAnswer,
    SamplerEnded,
    SamplerFailure,
    SamplerOrder,
    WeightsReady,
)

Buffers = tuple[dict[str, Tensor], dict[str, Tensor]]

_SECONDS_TO_END = 2.0


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
        self._finished: asyncio.Queue[FinishedGroup | SamplerFailure] = asyncio.Queue()
        self._annotator_state: Mapping[str, Any] = {}
        self._reports: list[ActivityReport] = []
        self.in_flight = 0
        threading.Thread(target=self._listen, daemon=True, name="rollouts").start()

    def order(self, request: PromptRequest) -> None:
        self._send(request)

    def expect(self, requests: Sequence[PromptRequest]) -> None:
        self._send(ExpectedRequests(tuple(requests)))

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
        self._send(KnownToAnnotator(state))

    async def publish(self, version: int, weights: Weights) -> None:
        buffer = version % 2
        await asyncio.to_thread(self._free[buffer].wait)
        self._free[buffer].clear()
        for name, tensor in weights.items():
            self._buffers[buffer][name].copy_(tensor.detach())
        self._send(WeightsReady(version, buffer))

    async def close(self) -> None:
        self._send(None)
        await asyncio.to_thread(self._process.join, 10)
        if self._process.is_alive():
            self._process.kill()

    def _taken(self, message: FinishedGroup | SamplerFailure) -> RolloutGroup:
        """A group that is handed out, and with it what its coach has learned."""
        if isinstance(message, SamplerFailure):
            self._finished.put_nowait(message)
            raise SamplerEnded(message)
        self._annotator_state = message.annotator
        return message.group

    def _send(self, message: SamplerOrder | None) -> None:
        try:
            self._pipe.send(message)
        except OSError:
            self._put(SamplerFailure("its pipe is closed"))

    def _listen(self) -> None:
        try:
            while True:
                message = self._pipe.recv()
                if isinstance(message, WeightsReady):
                    self._free[message.place].set()
                else:
                    self._put(message)
        except (EOFError, OSError):
            self._process.join(_SECONDS_TO_END)
            self._put(SamplerFailure(f"exit code {self._process.exitcode}"))
            for event in self._free:
                event.set()

    def _put(self, message: FinishedGroup | ActivityReport | SamplerFailure) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._receive, message)

    def _receive(self, message: FinishedGroup | ActivityReport | SamplerFailure) -> None:
        if isinstance(message, ActivityReport):
            self._reports.append(message)
            self.in_flight = message.in_flight
        else:
            self._finished.put_nowait(message)


def _shared(weights: Weights) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True).share_memory_() for name, tensor in weights.items()}


class _PipeLink:
    """The sampler's end of the pipe."""

    def __init__(self, pipe: Connection, buffers: Buffers) -> None:
        self._pipe, self._buffers = pipe, buffers

    def receive(self) -> SamplerOrder | None:
        order: SamplerOrder | None = self._pipe.recv()
        return order

    def send(self, answer: SamplerAnswer) -> None:
        self._pipe.send(answer)

    def read_weights(self, ready: WeightsReady) -> Weights:
        return self._buffers[ready.place]


def _sampler_main(pipe: Connection, config: str, start: str, home: str, buffers: Buffers) -> None:
    """The main function of the sampling process."""
    end_with_peer(pipe.fileno())
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    run_sampler(_PipeLink(pipe, buffers), RunConfig.model_validate_json(config), Path(start), Path(home))
