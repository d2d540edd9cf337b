"""How long decoding stands still when new weights are published, as a multiple of a decode step, on this machine.

    python benchmarks/engine_weights.py [--model DIRECTORY] [--sequences N]

in_place  the engine reads the trainer's own tensors: new ones are copied over them between two steps
shadow    the engine has two sets of its own: one is written while the other decodes, then they change places

Both are medians of seven. Reading again what the old weights had read is not counted: it depends on the staleness that
is allowed, not on how the weights arrive.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from gametape.cli.shared import home_directory
from gametape.core.messages import GenerateRequest, Sampling
from gametape.engines import smollm2
from gametape.engines.torch.build import build_stepper
from gametape.engines.torch.jobs import GenerateJob
from gametape.engines.torch.stepper import EngineLimits, Stepper
from gametape.engines.torch.weights import StandbyWeights, match_weights

REPEATS, PROMPT = 7, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=smollm2.model_directory(home_directory(None)))
    parser.add_argument("--sequences", type=int, default=32)
    chosen = parser.parse_args()
    network: Any = AutoModelForCausalLM.from_pretrained(chosen.model, dtype=torch.float32)
    network.requires_grad_(False)
    weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    stepper = build_stepper(
        network, EngineLimits(max_sequences=chosen.sequences, token_budget=4096, max_staleness=10**6)
    )
    assert stepper is not None
    _fill(stepper, chosen.sequences)
    step = _median(stepper.step)
    version = iter(range(1, 10**6))

    def in_place() -> None:
        match_weights(stepper.decoder.module, weights).copy()
        stepper.weights_changed(next(version))

    copied = _median(in_place)
    shadow = StandbyWeights(stepper)
    written = _median(lambda: shadow.write(weights))
    swapped = _median(lambda: shadow.swap(next(version)))
    report = {
        "cores": os.cpu_count(),
        "sequences": chosen.sequences,
        "step_ms": round(1e3 * step, 2),
        "in_place": {"pause_ms": round(1e3 * copied, 2), "steps": round(copied / step, 3)},
        "shadow": {
            "pause_ms": round(1e3 * swapped, 3),
            "steps": round(swapped / step, 5),
            "written_beside_ms": round(1e3 * written, 1),
        },
    }
    print(json.dumps(report))


def _fill(stepper: Stepper, sequences: int) -> None:
    """Everybody decodes."""
    for number in range(sequences):
        prompt = [100 + (7 * number + at) % 1000 for at in range(PROMPT)]
        request = GenerateRequest(
            request_id=str(number), prompt_ids=prompt, max_tokens=1000, sampling=Sampling(temperature=0)
        )
        stepper.add(GenerateJob(request, lambda _: None, number))
    for _ in range(3):
        stepper.step()


def _median(work: Callable[[], None]) -> float:
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
