"""Rounds on a GPU: several steps of a whole batch per look of the host, each step one replay of a CUDA graph.

Graphs are recorded when they are first needed, for a few sizes of batch and lengths of context; a batch runs in the
smallest that holds it. Rows that end within a round stand still for the rest of it and cost next to nothing.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from gametape.engines.torch.attention.triton_decode import splits_for
from gametape.engines.torch.cuda_step import DecodeStep
from gametape.engines.torch.decode_rounds import DecodeRow, DrawnTokens
from gametape.engines.torch.triton_sampler import RowProgress


class _Answers:
    """What a round drew, on its way to the host."""

    def __init__(self, progress: RowProgress) -> None:
        self._progress = progress
        self._drawn_N = _mirror(progress.drawn_N)
        self._ids_NS = _mirror(progress.ids_NS)
        self._logprobs_NS = _mirror(progress.logprobs_NS)
        self._there = torch.cuda.Event()

    def fetch(self, lines: int, steps: int) -> None:
        self._lines, self._steps = lines, steps
        self._drawn_N.copy_(self._progress.drawn_N, non_blocking=True)
        self._ids_NS.copy_(self._progress.ids_NS, non_blocking=True)
        self._logprobs_NS.copy_(self._progress.logprobs_NS, non_blocking=True)
        self._there.record()

    def wait(self) -> list[DrawnTokens]:
        self._there.synchronize()
        drawn = self._drawn_N[: self._lines].tolist()
        ids = self._ids_NS[: self._lines, : self._steps].tolist()
        logprobs = self._logprobs_NS[: self._lines, : self._steps].tolist()
        return [DrawnTokens(i[:n], p[:n]) for n, i, p in zip(drawn, ids, logprobs, strict=True)]


class DecodeGraphs:
    """`Recorded` steps. Not for more than one thread at a time.

    A round may be sent after another before that one is finished: then the device does not wait for the host to look
    at what was drawn.
    """

    def __init__(self, step: DecodeStep) -> None:
        self._step = step
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._answers = (_Answers(step.progress), _Answers(step.progress))
        self._sent = self._finished = 0
        self._lines: Sequence[DecodeRow] = ()
        self._ahead = 0
        # What the device holds, in memory that it can read by itself. Tables change little from round to round.
        self._integers_FN = _mirror(step.integers_FN)
        self._reals_FN = _mirror(step.reals_FN)
        self._seeds_N = _mirror(step.seeds_N)
        self._stops_NS = _mirror(step.stops_NS)
        self._tables_NB = _mirror(step.tables_NB)
        self._tables: list[list[int]] = [[] for _ in range(step.sizes.rows)]

    @property
    def max_length(self) -> int:
        return self._step.sizes.context

    @property
    def max_stop_ids(self) -> int:
        return self._step.sizes.stops

    def start(self, rows: Sequence[DecodeRow], steps: int) -> None:
        """Returns while the device works: `finish` waits for it."""
        room = self._step.sizes
        if self._sent != self._finished:
            raise ValueError("rounds that were sent have not been finished")
        if not 0 < len(rows) <= room.rows:
            raise ValueError(f"a round is for 1 to {room.rows} lines")
        if max(line.length + line.max_new_tokens for line in rows) > room.context:
            raise ValueError(f"a line holds at most {room.context} tokens")
        if max(len(line.stop_ids) for line in rows) > room.stops:
            raise ValueError(f"a line has at most {room.stops} stop tokens")
        self._lines, self._ahead = rows, 0
        self._upload(rows)
        self._send(steps)

    def continue_round(self, steps: int) -> None:
        if self._sent - self._finished != 1:
            raise ValueError("a round goes on from one that has been sent and not finished")
        self._send(steps)

    def finish(self) -> list[DrawnTokens]:
        if self._sent == self._finished:
            raise ValueError("no round has been sent")
        self._finished += 1
        return self._answers[self._finished % 2].wait()

    def _send(self, steps: int) -> None:
        room, progress = self._step.sizes, self._step.progress
        if not 0 < steps <= room.steps:
            raise ValueError(f"a round has 1 to {room.steps} steps")
        self._ahead += steps
        longest = max(line.length + min(self._ahead, line.max_new_tokens) for line in self._lines)
        rows = padded_size(len(self._lines), room.rows)
        graph = self._graph(rows, padded_size(splits_for(longest - 1, self._step.tiling.split)))
        for _ in range(steps):
            graph.replay()
        self._sent += 1
        self._answers[self._sent % 2].fetch(len(self._lines), steps)
        self._step.row_sampling.limits_N.sub_(progress.drawn_N)
        progress.drawn_N.zero_()

    def _upload(self, lines: Sequence[DecodeRow]) -> None:
        step, count, stops = self._step, len(lines), self._step.sizes.stops
        idle = [0] * (step.sizes.rows - count)
        integers = [
            [line.token for line in lines] + idle,
            [line.length for line in lines] + idle,
            [1] * count + idle,
            [0] * count + idle,
            [line.max_new_tokens for line in lines] + idle,
            [line.top_k for line in lines] + idle,
        ]
        reals = [[line.temperature for line in lines] + idle, [line.top_p for line in lines] + idle]
        self._integers_FN.copy_(torch.tensor(integers, dtype=torch.int32))
        self._reals_FN.copy_(torch.tensor(reals))
        self._seeds_N[:count] = torch.tensor([line.seed for line in lines])
        ends = [[*line.stop_ids, *[-1] * (stops - len(line.stop_ids))] for line in lines]
        self._stops_NS[:count] = torch.tensor(ends, dtype=torch.int32)
        tables = self._tables_NB.numpy()
        for row, line in enumerate(lines):
            before = self._tables[row]
            if line.blocks != before:
                known = len(before) if line.blocks[: len(before)] == before else 0
                tables[row, known : len(line.blocks)] = line.blocks[known:]
                self._tables[row] = list(line.blocks)
        step.integers_FN.copy_(self._integers_FN, non_blocking=True)
        step.reals_FN.copy_(self._reals_FN, non_blocking=True)
        step.seeds_N.copy_(self._seeds_N, non_blocking=True)
        step.stops_NS.copy_(self._stops_NS, non_blocking=True)
        step.tables_NB.copy_(self._tables_NB, non_blocking=True)

    def _graph(self, rows: int, splits: int) -> torch.cuda.CUDAGraph:
        if (rows, splits) not in self._graphs:
            live_N = self._step.progress.live_N
            waiting_N = live_N.clone()
            live_N.zero_()
            self._graphs[rows, splits] = self._record(rows, splits)
            live_N.copy_(waiting_N)
        return self._graphs[rows, splits]

    def _record(self, rows: int, splits: int) -> torch.cuda.CUDAGraph:
        """Launched once, with every row at rest, so that kernels are compiled and nothing is drawn; then recorded."""
        self._step.launch(rows, splits)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile: a trainer, say.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            self._step.launch(rows, splits)
        return graph


def padded_size(count: int, most: int | None = None) -> int:
    """The size that a count is rounded up to: powers of two up to 64, then steps of an eighth of the power below."""
    size = 1 << (count - 1).bit_length() if count > 1 else 1
    if size > 64:
        stride = size // 8
        size = -(-count // stride) * stride
    return size if most is None else min(size, most)


def _mirror(tensor: Tensor) -> Tensor:
    mirror: Tensor = torch.zeros(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return mirror
