"""bfloat16 on a CPU: only where it is asked for, a process of its own has survived it, and it pays."""

import sys

import pytest

from gametape.core.errors import BadInput
from gametape.engines.torch import cpu_dtype
from gametape.engines.torch.cpu_dtype import (
    CPU_DTYPE_VARIABLE,
    MIN_SPEEDUP,
    Bfloat16Support,
    choose_cpu_dtype,
    probe_bfloat16,
)

pytest.importorskip("torch")


@pytest.fixture
def trials(tmp_path, monkeypatch):
    """A cache of its own, and a program in place of Python that notes each run and does what its text says."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(CPU_DTYPE_VARIABLE, raising=False)
    program, runs = tmp_path / "python", tmp_path / "runs"

    def become(text):
        program.write_text(f"#!/bin/sh\necho >> {runs}\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        return lambda: len(runs.read_text().splitlines()) if runs.exists() else 0

    return become


def says(speedup):
    return f"echo noise; echo '{Bfloat16Support(works=True, speedup=speedup).model_dump_json()}'"


def test_unasked_it_is_float32_and_nothing_is_tried(trials):
    runs = trials(says(9.0))
    assert (choose_cpu_dtype(), runs()) == ("float32", 0)


def test_a_trial_that_dies_of_an_illegal_instruction(trials, monkeypatch):
    runs = trials("kill -ILL $$")
    monkeypatch.setenv(CPU_DTYPE_VARIABLE, "auto")
    assert (choose_cpu_dtype(), choose_cpu_dtype()) == ("float32", "float32")
    assert probe_bfloat16() == Bfloat16Support(works=False)
    assert runs() == 1


def test_a_trial_that_fails_otherwise_says_nothing_and_is_repeated(trials):
    runs = trials("exit 1")
    assert (probe_bfloat16(), probe_bfloat16(), runs()) == (None, None, 2)


@pytest.mark.parametrize(("speedup", "expected"), [(MIN_SPEEDUP, "bfloat16"), (MIN_SPEEDUP - 0.01, "float32")])
def test_it_has_to_pay(trials, monkeypatch, speedup, expected):
    runs = trials(says(speedup))
    monkeypatch.setenv(CPU_DTYPE_VARIABLE, "auto")
    assert [choose_cpu_dtype(), choose_cpu_dtype()] == [expected] * 2
    assert runs() == 1


def test_a_broken_cache_and_one_that_cannot_be_written(trials, monkeypatch, tmp_path):
    runs = trials(says(2.0))
    probe_bfloat16()
    cpu_dtype._cache_file().write_text("{")
    assert probe_bfloat16() == Bfloat16Support(works=True, speedup=2.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "runs"))
    assert probe_bfloat16() == Bfloat16Support(works=True, speedup=2.0)
    assert runs() == 3


def test_another_wish_is_bad_input(monkeypatch):
    monkeypatch.setenv(CPU_DTYPE_VARIABLE, "float8")
    with pytest.raises(BadInput, match="float32 or auto"):
        choose_cpu_dtype()


@pytest.mark.slow
def test_this_machine_and_a_network_in_bfloat16():
    """If it works here, the engine's log-probabilities are those of float32 but for rounding."""
    import torch

    from .networks import ask, network, plain, plain_logits, run, stepper

    found = probe_bfloat16()
    assert found is not None
    if not found.works:
        pytest.skip("bfloat16 does not work on this CPU")
    core = stepper(network().to(torch.bfloat16))
    asked = [([at, at + 1, at + 2], ask(core, [at, at + 1, at + 2], 30)[1]) for at in range(8)]
    run(core)
    gaps = []
    for prompt, results in asked:
        logits = plain_logits(plain(), [*prompt, *results[0].completion_ids])[len(prompt) - 1 : -1]
        own = torch.tensor(results[0].logprobs)
        gaps.append(logits.log_softmax(-1).gather(1, torch.tensor(results[0].completion_ids)[:, None])[:, 0] - own)
    assert torch.cat(gaps).abs().mean() < 0.2
