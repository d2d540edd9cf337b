"""Decode rounds on a GPU: each step is one replay of a CUDA graph, and the host reads the tokens of several at once.

Graphs are recorded when they are first needed, for a few sizes of batch and lengths of context; a batch runs in the
smallest that holds it. Rows that end within a round stand still for the rest of it and cost next to nothing.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gametape.engines.torch.attention.triton_decode import splits_for
from gametape.engines.torch.cuda_step import DecodeStep
from gametape.engines.torch.decode_rounds import DecodeRow, DrawnTokens
from gametape.engines.torch.triton_sampler import RowProgress


class _RoundResult:
    """The tokens of a round, on their way to the host."""

    def __init__(self, progress: RowProgress) -> None:
        self._progress = progress
        self._drawn_N = _pinned_like(progress.drawn_N)
        self._ids_NS = _pinned_like(progress.ids_NS)
        self._logprobs_NS = _pinned_like(progress.logprobs_NS)
        self._copied = torch.cuda.Event()

    def fetch(self, rows: int, steps: int) -> None:
        self._rows, self._steps = rows, steps
        self._drawn_N.copy_(self._progress.drawn_N, non_blocking=True)
        self._ids_NS.copy_(self._progress.ids_NS, non_blocking=True)
        self._logprobs_NS.copy_(self._progress.logprobs_NS, non_blocking=True)
        self._copied.record()

    def wait(self) -> list[DrawnTokens]:
        self._copied.synchronize()
        drawn = self._drawn_N[: self._rows].tolist()
        ids = self._ids_NS[: self._rows, : self._steps].tolist()
        logprobs = self._logprobs_NS[: self._rows, : self._steps].tolist()
        return [DrawnTokens(i[:n], p[:n]) for n, i, p in zip(drawn, ids, logprobs, strict=True)]


class DecodeGraphs:
    """A `GraphRunner`. Not for more than one thread at a time.

    A round may be sent before the one before it is finished: then the device does not wait for the host.
    """

    def __init__(self, step: DecodeStep, prepare: Callable[[int], None] = lambda _rows: None) -> None:
        """`prepare` is called with a size of batch before it is first recorded."""
        self._step, self._prepare = step, prepare
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._results = (_RoundResult(step.progress), _RoundResult(step.progress))
        self._sent = self._finished = 0
        self._rows: Sequence[DecodeRow] = ()
        self._ahead = 0
        # Pinned copies of the buffers on the device. Tables change little from round to round.
        self._integers_FN = _pinned_like(step.integers_FN)
        self._reals_FN = _pinned_like(step.reals_FN)
        self._seeds_N = _pinned_like(step.seeds_N)
        self._stops_NS = _pinned_like(step.stops_NS)
        self._tables_NB = _pinned_like(step.tables_NB)
        self._tables: list[list[int]] = [[] for _ in range(step.sizes.rows)]

    @property
    def max_length(self) -> int:
        return self._step.sizes.context

    @property
    def max_stop_ids(self) -> int:
        return self._step.sizes.stops

    def start(self, rows: Sequence[DecodeRow], steps: int) -> None:
        """Returns while the device works: `finish` waits for it."""
        sizes = self._step.sizes
        if self._sent != self._finished:
            raise ValueError("rounds that were sent have not been finished")
        if not 0 < len(rows) <= sizes.rows:
            raise ValueError(f"a round is for 1 to {sizes.rows} rows")
        if max(row.length + row.max_new_tokens for row in rows) > sizes.context:
            raise ValueError(f"a row holds at most {sizes.context} tokens")
        if max(len(row.stop_ids) for row in rows) > sizes.stops:
            raise ValueError(f"a row has at most {sizes.stops} stop tokens")
        self._rows, self._ahead = rows, 0
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
        return self._results[self._finished % 2].wait()

    def _send(self, steps: int) -> None:
        sizes, progress = self._step.sizes, self._step.progress
        if not 0 < steps <= sizes.steps:
            raise ValueError(f"a round has 1 to {sizes.steps} steps")
        self._ahead += steps
        longest = max(row.length + min(self._ahead, row.max_new_tokens) for row in self._rows)
        padded = padded_size(len(self._rows), sizes.rows)
        graph = self._graph(padded, padded_size(splits_for(longest - 1, self._step.order.attention.split)))
        for _ in range(steps):
            graph.replay()
        self._sent += 1
        self._results[self._sent % 2].fetch(len(self._rows), steps)
        self._step.row_sampling.limits_N.sub_(progress.drawn_N)
        progress.drawn_N.zero_()

    def _upload(self, rows: Sequence[DecodeRow]) -> None:
        step, count, stops = self._step, len(rows), self._step.sizes.stops
        idle = [0] * (step.sizes.rows - count)
        integers = [
            [row.token for row in rows] + idle,
            [row.length for row in rows] + idle,
            [1] * count + idle,
            [0] * count + idle,
            [row.max_new_tokens for row in rows] + idle,
            [row.top_k for row in rows] + idle,
        ]
        reals = [[row.temperature for row in rows] + idle, [row.top_p for row in rows] + idle]
        self._integers_FN.copy_(torch.tensor(integers, dtype=torch.int32))
        self._reals_FN.copy_(torch.tensor(reals))
        self._seeds_N[:count] = torch.tensor([row.seed for row in rows])
        ends = [[*row.stop_ids, *[-1] * (stops - len(row.stop_ids))] for row in rows]
        self._stops_NS[:count] = torch.tensor(ends, dtype=torch.int32)
        tables = self._tables_NB.numpy()
        for at, row in enumerate(rows):
            before = self._tables[at]
            if row.blocks != before:
                known = len(before) if row.blocks[: len(before)] == before else 0
                tables[at, known : len(row.blocks)] = row.blocks[known:]
                self._tables[at] = list(row.blocks)
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
            self._prepare(rows)
            self._graphs[rows, splits] = self._record(rows, splits)
            live_N.copy_(waiting_N)
        return self._graphs[rows, splits]

    def _record(self, rows: int, splits: int) -> torch.cuda.CUDAGraph:
        """Launch once with no live row, so that kernels are compiled and nothing is sampled; then record."""
        self._step.launch(rows, splits)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile: a trainer, say.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            self._step.launch(rows, splits)
        return graph


def padded_size(count: int, most: int | None = None) -> int:
    """The recorded size for a count: powers of two up to 64, then steps of an eighth of the power below."""
    size = 1 << (count - 1).bit_length() if count > 1 else 1
    if size > 64:
        stride = size // 8
        size = -(-count // stride) * stride
    return size if most is None else min(size, most)


def _pinned_like(tensor: Tensor) -> Tensor:
    pinned: Tensor = torch.zeros(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return pinned
