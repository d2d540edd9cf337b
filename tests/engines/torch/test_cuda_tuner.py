"""What is measured is chosen, and is the same for the next process; on a GPU, or with invented times, interpreted."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import torch

from gametape.engines.torch import cuda_tuner
from gametape.engines.torch.cuda_step import BufferSizes, DecodeStep
from gametape.engines.torch.cuda_tuner import StepTuner, size_class
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.kv_blocks import BlockPool

from .networks import network


def test_size_classes_hold_their_batches() -> None:
    assert [size_class(rows, 300) for rows in (1, 64, 65, 128, 160, 257, 300)] == [64, 64, 128, 128, 256, 300, 300]
    assert size_class(20, 32) == 32


def _step() -> DecodeStep:
    dtype = torch.float32 if DEVICE.type == "cpu" else torch.bfloat16
    module = network("qwen3").to(DEVICE, dtype)
    spec = read_decoder_spec(module.config)
    assert spec is not None
    pool = BlockPool(spec, 64, 4, DEVICE, dtype)
    return DecodeStep(Decoder(module, spec), pool, BufferSizes(rows=4, context=40, steps=4, stops=2))


def test_what_is_found_is_kept_for_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if DEVICE.type == "cpu":
        falling = count(0, -1)
        monkeypatch.setattr(cuda_tuner, "launch_milliseconds", lambda _launch: float(next(falling)))
        monkeypatch.setattr(cuda_tuner, "_launch_all", lambda launches: [launch() for launch in launches])
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "interpreter")
    step = _step()
    first = StepTuner(step)
    first.prepare(3)
    assert {trial.part for trial in first.trials} == {
        *("attention", "parts of output", "parts of down"),
        *("qkv", "output", "gate", "down", "head"),
    }
    for trial in first.trials:
        best = min(trial.milliseconds, key=trial.milliseconds.__getitem__)
        if trial.part in {"qkv", "output", "gate", "down", "head"}:
            assert str(getattr(first.choices.tilings[4], trial.part)) == best
    assert step.order == first.choices.order
    assert not step.progress.live_N.any()
    assert not step.tables_NB.any()

    second = StepTuner(_step())
    second.prepare(4)
    assert second.trials == []
    assert second.choices == first.choices


def test_a_file_that_cannot_be_read_is_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if DEVICE.type == "cpu":
        monkeypatch.setattr(cuda_tuner, "launch_milliseconds", lambda _launch: 1.0)
        monkeypatch.setattr(cuda_tuner, "_launch_all", lambda _launches: None)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "interpreter")
    StepTuner(_step())
    for path in tmp_path.rglob("*.json"):
        path.write_text('{"order": 3}')
    assert StepTuner(_step()).trials


def test_a_measured_step_begins_anew_each_time_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Choosing may come late, when the pool holds keys and values of requests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    step = _step()
    if DEVICE.type == "cpu":
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "interpreter")
        monkeypatch.setattr(cuda_tuner, "_launch_all", lambda _launches: None)
    monkeypatch.setattr(cuda_tuner, "launch_milliseconds", lambda _launch: 1.0)
    tuner = StepTuner(step)
    generator = torch.Generator().manual_seed(0)
    for pool in (step.pool.keys_LBTGD, step.pool.values_LBTGD):
        pool.copy_(torch.randn(pool.shape, generator=generator))
    step.progress.lengths_N[:2] = torch.tensor([7, 9])
    before = [each.clone() for each in (step.pool.keys_LBTGD, step.pool.values_LBTGD, step.integers_FN, step.tables_NB)]
    seen = []

    def launched(launch: Callable[[], None]) -> float:
        if len(seen) < 4:
            for _ in range(2):
                launch()
                seen.append((step.progress.drawn_N[:3].tolist(), step.progress.lengths_N[:3].tolist()))
        return 1.0

    monkeypatch.setattr(cuda_tuner, "launch_milliseconds", launched)
    tuner.prepare(3)
    assert seen == [([1, 1, 1], [21, 26, 31])] * 4
    after = (step.pool.keys_LBTGD, step.pool.values_LBTGD, step.integers_FN, step.tables_NB)
    for was, now in zip(before, after, strict=True):
        torch.testing.assert_close(now, was, atol=0, rtol=0)
