"""Finds the fastest way of each part of a decode step on the GPU at hand, by measuring a few.

What is timed is always a whole step, in which one part is done another way. A part that is repeated alone finds its
weights in the cache and does not run into its neighbours: what is fastest there need not be in a step.

What is found depends on the network's shape, the number of slots and the size class of a batch, never on a request, and
is fixed before the first step of such a batch. It is kept in the user's cache directory: all processes of a machine use
the same, so that what the order of sums decides, the last bits, is the same in all of them.
"""

# mypy: disable-error-code="import-not-found"
# Triton is not installed everywhere.

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
import triton
from pydantic import TypeAdapter, ValidationError

from gametape.engines.torch.attention.triton_decode import AttentionTiling, attention_tilings, splits_for
from gametape.engines.torch.cuda_step import VOCABULARY_TILE, DecodeStep, StepTilings, SumOrder, usual_tilings
from gametape.engines.torch.triton_linear import Tiling

C = TypeVar("C")
_CLASSES = (64, 128, 256)
"""Batches of up to so many rows are measured together; larger ones as large as they may be."""
_CONTEXT = 512
"""Rows of a measured step are from half to the whole of this long."""
_LEAST_DEPTH = 256
"""A part of a product is at least so deep."""
_METHOD = 2
"""Another number where kernels or the way to measure have changed: what was found before does not hold then."""


@dataclass
class StepChoices:
    """What was found: the order of sums, and the tilings of each size class."""

    order: SumOrder
    tilings: dict[int, StepTilings] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A part of a step, and the milliseconds that a step takes with each way of it that was tried."""

    part: str
    rows: int
    milliseconds: dict[str, float]


class StepTuner:
    """Sets the order and the tilings of a step before they are recorded. `trials` is what it measured itself."""

    def __init__(self, step: DecodeStep) -> None:
        self._step = step
        self._file = _cache_file(step)
        self.trials: list[Trial] = []
        self.seconds = 0.0
        found = self._read()
        self.choices = found or self._timed(self._measure_order)
        step.use_order(self.choices.order)
        if not found:
            self._write()

    def prepare(self, rows: int) -> None:
        """Choose the tilings for batches of this padded size. No row may be live."""
        size = size_class(rows, self._step.sizes.rows)
        if size not in self.choices.tilings:
            self.choices.tilings[size] = self._timed(lambda: self._measure_tilings(size))
            self._write()
        self._step.use_tilings(rows, self.choices.tilings[size])

    def _timed(self, measure: Callable[[], C]) -> C:
        started = time.perf_counter()
        found = measure()
        self.seconds += time.perf_counter() - started
        return found

    def _measure_order(self) -> StepChoices:
        step, spec = self._step, self._step.decoder.spec
        rows = step.sizes.rows
        attended, gated = spec.heads * spec.head_dim, step.decoder.layers[0].down_EI.shape[1]
        ways = attention_tilings(rows, spec.kv_heads, spec.head_dim)
        step.use_tilings(rows, usual_tilings(rows))
        with self._occupied(rows):
            _launch_all([partial(self._attend, rows, way) for way in ways])
            attention = self._fastest("attention", rows, ways, lambda way: self._use(SumOrder(way)))
            order = SumOrder(attention)
            output = self._fastest(
                "parts of output", rows, _parts(attended), lambda parts: self._use(replace(order, output_parts=parts))
            )
            order = replace(order, output_parts=output)
            down = self._fastest(
                "parts of down", rows, _parts(gated), lambda parts: self._use(replace(order, down_parts=parts))
            )
        return StepChoices(replace(order, down_parts=down))

    def _use(self, order: SumOrder) -> None:
        if self._step.order != order:
            self._step.use_order(order)

    def _attend(self, rows: int, tiling: AttentionTiling) -> None:
        step = self._step
        step.attend(0, step.decoder.layers[0], rows, self._splits(tiling), tiling)

    def _measure_tilings(self, rows: int) -> StepTilings:
        """One product after the other, each among the best of those before it."""
        step, found = self._step, usual_tilings(rows)
        ways = {each.name: _tilings(each.name, rows) for each in fields(StepTilings)}
        with self._occupied(rows):
            _launch_all([partial(self._product, part, rows, way) for part, each in ways.items() for way in each])
            for part, each in ways.items():
                among = [replace(found, **{part: way}) for way in each]
                found = self._fastest(part, rows, among, partial(step.use_tilings, rows), part)
        return found

    def _product(self, part: str, rows: int, tiling: Tiling) -> None:
        """The launch of a product in one layer."""
        step, layer = self._step, self._step.decoder.layers[0]
        launches: dict[str, Callable[[], object]] = {
            "qkv": lambda: step.project_qkv(layer, rows, tiling),
            "output": lambda: step.project_output(layer, rows, tiling),
            "gate": lambda: step.gate(layer, rows, tiling),
            "down": lambda: step.project_down(layer, rows, tiling),
            "head": lambda: step.compute_logits(rows, tiling),
        }
        launches[part]()

    def _fastest(
        self, part: str, rows: int, candidates: Sequence[C], choose: Callable[[C], None], differ_in: str = ""
    ) -> C:
        """The way with which a whole step takes the least time. Ways may be named by what they `differ_in`."""
        took = []
        for each in candidates:
            choose(each)
            took.append(launch_milliseconds(partial(self._step_anew, rows)))
        names = [str(getattr(each, differ_in)) if differ_in else str(each) for each in candidates]
        self.trials.append(Trial(part, rows, dict(zip(names, took, strict=True))))
        return candidates[took.index(min(took))]

    def _step_anew(self, rows: int) -> None:
        """A step from the same state each time."""
        step = self._step
        # By a kernel: the first of the step starts while the one before it ends, and a plain copy is none.
        torch.add(self._state_FN, 0, out=step.integers_FN)
        step.launch(rows, self._splits(step.order.attention))

    def _splits(self, tiling: AttentionTiling) -> int:
        return splits_for(min(_CONTEXT, self._step.sizes.context) - 1, tiling.split)

    @contextmanager
    def _occupied(self, rows: int) -> Iterator[None]:
        """Make so many rows live, which read from all over the pool and all write to one block. What was there before
        is there again afterwards."""
        step, pool, device = self._step, self._step.pool, self._step.tables_NB.device
        states = (step.integers_FN, step.tables_NB, pool.keys_LBTGD[:, 0], pool.values_LBTGD[:, 0])
        kept = [each.clone() for each in states]
        longest = min(_CONTEXT, step.sizes.context)
        lengths_N = longest // 2 + torch.arange(rows, device=device) * (longest - longest // 2) // rows
        places = torch.arange(step.tables_NB.numel(), device=device) * 7919 % pool.block_count
        step.tables_NB.copy_(places.view(step.tables_NB.shape))
        step.tables_NB[torch.arange(rows, device=device), lengths_N // pool.block_size] = 0
        step.integers_FN.zero_()
        step.progress.lengths_N[:rows] = lengths_N.int()
        step.progress.live_N[:rows] = 1
        step.row_sampling.limits_N[:rows] = 2
        self._state_FN = step.integers_FN.clone()
        try:
            yield
        finally:
            for each, before in zip(states, kept, strict=True):
                each.copy_(before)

    def _read(self) -> StepChoices | None:
        try:
            return TypeAdapter(StepChoices).validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return None

    def _write(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            whole = self._file.with_suffix(f".{os.getpid()}")
            whole.write_text(json.dumps(asdict(self.choices), indent=1))
            whole.replace(self._file)
        except OSError:
            return  # it is measured again in the next process


def size_class(rows: int, most: int) -> int:
    """The rows with which batches of this size are measured."""
    return min(next((size for size in _CLASSES if rows <= size), most), most)


def _launch_all(launches: Sequence[Callable[[], None]]) -> None:
    """Compile kernels side by side, which takes a second each. What they compute is not looked at."""
    with ThreadPoolExecutor(os.cpu_count(), initializer=torch.cuda.synchronize) as threads:
        list(threads.map(_fits, launches))


def _fits(launch: Callable[[], None]) -> bool:
    try:
        launch()
    except triton.runtime.errors.OutOfResources:
        return False
    return True


def launch_milliseconds(launch: Callable[[], None]) -> float:
    """How long these launches take when a graph repeats them; endless if a kernel asks for more than the GPU has."""
    if not _fits(launch):
        return float("inf")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        launch()
    for _ in range(2):
        graph.replay()
    took = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        took.append(begin.elapsed_time(end))
    return float(min(took))


def _tilings(part: str, rows: int) -> list[Tiling]:
    """Those worth measuring. Each has to be compiled once on a machine, so they are few."""
    usual: Tiling = getattr(usual_tilings(rows), part)
    if part == "head":
        others = [Tiling(64, VOCABULARY_TILE), Tiling(128, VOCABULARY_TILE, warps=8, stages=4)]
    elif rows <= 64:
        others = [Tiling(64, 32, stages=6), Tiling(64, 64, stages=5), Tiling(64, 32, depth=128)]
    elif rows <= 128:
        others = [Tiling(64, 64, stages=5), Tiling(128, 64, warps=8), Tiling(128, 32, stages=5)]
    else:
        others = [Tiling(64, 64, stages=5), Tiling(128, 64, warps=8), Tiling(128, 128, warps=8, stages=3)]
    return [usual, *(other for other in others if other != usual)]


def _parts(depth: int) -> list[int]:
    return [parts for parts in (1, 2, 4) if parts == 1 or depth // parts >= _LEAST_DEPTH]


def _cache_file(step: DecodeStep) -> Path:
    made_for = [
        str(_METHOD),
        torch.cuda.get_device_name(),
        torch.__version__,
        triton.__version__,
        str(step.decoder.spec),
        str(step.decoder.layers[0].down_EI.shape),
        str(step.decoder.dtype),
        str(step.sizes),
        str(step.pool.block_size),
    ]
    digest = hashlib.sha256("\n".join(made_for).encode()).hexdigest()[:16]
    directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return directory / "gametape" / f"decode-{digest}.json"
