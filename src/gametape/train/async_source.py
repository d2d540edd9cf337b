"""A rollout source in a process of its own: it samples while the learner learns, with weights a few versions old.

The two processes share memory for two copies of the weights: one is read while the other may be written. Everything
else is small messages. On a cluster the same messages go to other machines.
"""

import asyncio
import multiprocessing
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor

from gametape.agent.limits import RolloutLimits
from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.train.algorithms import make_algorithm
from gametape.train.policy import load_policy
from gametape.train.prompts import PromptDataset, open_prompt_dataset
from gametape.train.rollouts import PromptRequest, RolloutGroup, Weights
from gametape.train.sources import RolloutWorker

Buffers = tuple[dict[str, Tensor], dict[str, Tensor]]

_SECONDS_TO_END = 2.0


class SamplerEnded(GametapeError):
    """The process that samples rollouts has ended."""

    exit_code = 3


@dataclass(frozen=True)
class _WeightsReady:
    """Weights of a version lie in this buffer."""

    version: int
    buffer: int


@dataclass(frozen=True)
class _SamplerFailed:
    """The sampling process ended, for this reason."""

    reason: str


class AsyncSource:
    """A `RolloutSource`. At most two versions of weights are on their way; a third waits until the first has been
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
        self._finished: asyncio.Queue[RolloutGroup | _SamplerFailed] = asyncio.Queue()
        threading.Thread(target=self._listen, daemon=True, name="rollouts").start()

    def order(self, request: PromptRequest) -> None:
        self._send(request)

    async def take(self) -> RolloutGroup:
        """The next that is finished, whichever was ordered first."""
        group = await self._finished.get()
        if isinstance(group, _SamplerFailed):
            self._finished.put_nowait(group)
            raise SamplerEnded(f"the process that samples rollouts ended: {group.reason}; --resume goes on")
        return group

    def finished(self) -> list[RolloutGroup]:
        groups = []
        while not self._finished.empty():
            group = self._finished.get_nowait()
            if isinstance(group, _SamplerFailed):
                self._finished.put_nowait(group)
                break
            groups.append(group)
        return groups

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

    def _send(self, message: PromptRequest | _WeightsReady | None) -> None:
        try:
            self._pipe.send(message)
        except OSError:
            self._put(_SamplerFailed("its pipe is closed"))

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
            self._put(_SamplerFailed(f"exit code {self._process.exitcode}"))
            for event in self._free:
                event.set()

    def _put(self, message: RolloutGroup | _SamplerFailed) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._finished.put_nowait, message)


def _shared(weights: Weights) -> dict[str, Tensor]:
    return {name: tensor.detach().clone().share_memory_() for name, tensor in weights.items()}


def _sampler_main(pipe: Connection, config: str, start: str, home: str, buffers: Buffers) -> None:
    """The main function of the sampling process."""
    torch.set_num_threads(1)
    try:
        asyncio.run(_run_sampler(pipe, RunConfig.model_validate_json(config), Path(start), Path(home), buffers))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
    except Exception as error:
        pipe.send(_SamplerFailed(f"{type(error).__name__}: {error}"))
        raise


async def _run_sampler(pipe: Connection, config: RunConfig, start: Path, home: Path, buffers: Buffers) -> None:
    async with open_prompt_dataset(config.tasks, config.seed, home, config.rl.turns) as dataset:
        await _Sampler(pipe, config, start, dataset, buffers).run()


class _Sampler:
    """Samples ordered groups, a bounded number at once, and takes over new weights between two steps."""

    def __init__(
        self, pipe: Connection, config: RunConfig, start: Path, dataset: PromptDataset, buffers: Buffers
    ) -> None:
        self._pipe, self._buffers, self._rl = pipe, buffers, config.rl
        self._policy = load_policy(start)
        limits = RolloutLimits(turns=config.rl.turns, turn_tokens=config.rl.turn_tokens, wall_seconds=None)
        model = self._policy.sampler(staleness=config.rl.max_staleness)
        self._engine = model.engine
        algorithm = make_algorithm(config)
        self._worker = RolloutWorker(model, dataset, limits, config.rl.temperature, config.seed, algorithm.reward)
        self._annotator = algorithm.make_annotator(model, limits)
        self._slots = asyncio.Semaphore(config.rl.groups)
        self._closing = asyncio.Event()
        self._sampling: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        await self._closing.wait()
        for task in self._sampling:
            task.cancel()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while (message := self._pipe.recv()) is not None:
                loop.call_soon_threadsafe(self._receive, message)
        except (EOFError, OSError):
            pass
        loop.call_soon_threadsafe(self._closing.set)

    def _receive(self, message: PromptRequest | _WeightsReady) -> None:
        if isinstance(message, _WeightsReady):
            self._policy.load_weights(self._buffers[message.buffer])
            self._engine.weights_changed(message.version)
            self._pipe.send(message)
        else:
            task = asyncio.ensure_future(self._sample(message))
            self._sampling.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._sampling.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._pipe.send(_SamplerFailed(f"{type(error).__name__}: {error}"))

    async def _sample(self, request: PromptRequest) -> None:
        async with self._slots:
            group, episodes = await self._worker.run_group(request, self._rl.group_size)
            group = await self._annotator.annotate(group, episodes)
        self._pipe.send(group)
