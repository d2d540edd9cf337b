"""Finds the fastest way of each part of a decode step on the GPU at hand, by measuring a few.

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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
import triton
from pydantic import TypeAdapter, ValidationError

from gametape.engines.torch.attention.triton_decode import AttentionTiling, attention_tilings, splits_for
from gametape.engines.torch.cuda_step import VOCABULARY_TILE, DecodeStep, StepTilings, SumOrder, usual_tilings
from gametape.engines.torch.decoder import LayerWeights
from gametape.engines.torch.triton_linear import Tiling

C = TypeVar("C")
_CLASSES = (64, 128, 256)
"""Batches of up to so many rows are measured together; larger ones as large as they may be."""
_CONTEXT = 512
"""The length at which attention is measured."""
_LEAST_DEPTH = 256
"""A part of a product is at least so deep."""


@dataclass
class StepChoices:
    """What was found: the order of sums, and the tilings of each size class."""

    order: SumOrder
    tilings: dict[int, StepTilings] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A part of a step, and the milliseconds that all layers of it take in each way that was tried."""

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
        self._occupy(min(_CONTEXT, step.sizes.context) - 1)
        ways = attention_tilings(rows, spec.kv_heads, spec.head_dim)
        _launch_all([partial(self._attend, way) for way in ways])
        attention = self._fastest("attention", rows, ways, self._attend)
        self._leave()
        attended, gated = spec.heads * spec.head_dim, step.decoder.layers[0].down_EI.shape[1]
        output = self._fastest("parts of output", rows, _parts(attended), partial(self._add_output, attention))
        down = self._fastest("parts of down", rows, _parts(gated), partial(self._add_down, attention))
        return StepChoices(SumOrder(attention, output, down))

    def _attend(self, tiling: AttentionTiling) -> None:
        step = self._step
        splits = splits_for(min(_CONTEXT, step.sizes.context) - 1, tiling.split)
        for number, layer in enumerate(step.decoder.layers):
            step.attend(number, layer, step.sizes.rows, splits, tiling)

    def _add_output(self, attention: AttentionTiling, parts: int) -> None:
        step, rows = self._step, self._step.sizes.rows
        self._use(SumOrder(attention, output_parts=parts))
        for layer in step.decoder.layers:
            more = step.project_output(layer, rows, usual_tilings(rows).output)
            step.normalise(layer.before_mlp_E, rows, more)

    def _add_down(self, attention: AttentionTiling, parts: int) -> None:
        step, rows = self._step, self._step.sizes.rows
        self._use(SumOrder(attention, down_parts=parts))
        for layer in step.decoder.layers:
            more = step.project_down(layer, rows, usual_tilings(rows).down)
            step.normalise(layer.before_mlp_E, rows, more)

    def _use(self, order: SumOrder) -> None:
        """The first launch does, before it is recorded."""
        if self._step.order != order:
            self._step.use_order(order)

    def _measure_tilings(self, rows: int) -> StepTilings:
        candidates = {each.name: _tilings(each.name, rows) for each in fields(StepTilings)}
        _launch_all([partial(self._product(part, rows), way) for part, ways in candidates.items() for way in ways])
        found = {part: self._fastest(part, rows, ways, self._product(part, rows)) for part, ways in candidates.items()}
        return StepTilings(**found)

    def _product(self, part: str, rows: int) -> Callable[[Tiling], None]:
        """The launches of a product, in all layers that have it."""
        step = self._step
        launches: dict[str, Callable[[LayerWeights, int, Tiling], object]] = {
            "qkv": step.project_qkv,
            "output": step.project_output,
            "gate": step.gate,
            "down": step.project_down,
        }

        def launch(tiling: Tiling) -> None:
            if part == "head":
                step.compute_logits(rows, tiling)
            else:
                for layer in step.decoder.layers:
                    launches[part](layer, rows, tiling)

        return launch

    def _fastest(
        self,
        part: str,
        rows: int,
        candidates: Sequence[C],
        launch: Callable[[C], None],
    ) -> C:
        took = [launch_milliseconds(partial(launch, each)) for each in candidates]
        self.trials.append(Trial(part, rows, {str(each): ms for each, ms in zip(candidates, took, strict=True)}))
        return candidates[took.index(min(took))]

    def _occupy(self, length: int) -> None:
        """Make every row live, somewhere in the pool: nothing has been stored there yet."""
        step = self._step
        step.progress.lengths_N.fill_(length)
        step.progress.live_N.fill_(1)
        places = torch.arange(step.tables_NB.numel(), device=step.tables_NB.device) * 7919 % step.pool.block_count
        step.tables_NB.copy_(places.view(step.tables_NB.shape))

    def _leave(self) -> None:
        step = self._step
        step.integers_FN.zero_()
        step.tables_NB.zero_()

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
    """Compile kernels side by side, which takes a second each."""
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
    graph.replay()
    took = []
    for _ in range(3):
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
    return [parts for parts in (1, 2, 3, 4, 6, 8) if parts == 1 or depth // parts >= _LEAST_DEPTH]


def _cache_file(step: DecodeStep) -> Path:
    made_for = [
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
