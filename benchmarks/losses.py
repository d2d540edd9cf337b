"""How far the learner's gradients are from ones written out from the published formulas, in float64.

A tiny Llama, nine rollouts of three prompts in one, two and four segments, some with targets and some recorded earlier,
in portions that split rollouts. The first step of an update has ratios of 1, later ones do not. The relative error is
the largest difference of any entry of the gradient over its largest entry; `portions` and `order` compare the learner
with itself. Prints a table; `make evidence-losses` keeps it.
"""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.train.losses.cases import (
    float64_policy,
    make_batch,
    reference,
    relative_error,
    run_config,
    take_steps,
)

from gametape.train.policy import TrainablePolicy

VARIANTS = ("loo", "dr_grpo", "grpo", "dapo", "cispo", "gspo")
RESULTS = Path(__file__).parent / "results" / "losses.json"


def measure(policy: TrainablePolicy, variant: str) -> dict[str, float]:
    batch = make_batch(policy, targets=True, recorded=True)
    config = run_config(variant, portion=60, epochs=3)
    steps, metrics = take_steps(policy, config, batch)
    errors = [relative_error(step.gradient, reference(policy, step, steps[0], batch.samples, config)) for step in steps]
    shuffled = replace(batch, samples=tuple(Random(1).sample(batch.samples, len(batch.samples))))
    whole, _ = take_steps(policy, run_config(variant, epochs=3), batch)
    reordered, _ = take_steps(policy, run_config(variant, epochs=3), shuffled)
    return {
        "first step": errors[0],
        "later steps": max(errors[1:]),
        "portions": relative_error(steps[-1].gradient, whole[-1].gradient),
        "order": relative_error(reordered[-1].gradient, whole[-1].gradient),
        "least ratio": metrics.ratio["least"],
        "most": metrics.ratio["most"],
        "clipped": metrics.ratio["clipped"],
        "weights cut": metrics.importance["truncated"],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        policy = float64_policy(Path(scratch) / "tiny")
        rows = {variant: measure(policy, variant) for variant in VARIANTS}
    columns = list(rows["loo"])
    print("| variant | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for variant, row in rows.items():
        print(f"| {variant} | " + " | ".join(f"{row[column]:.2g}" for column in columns) + " |")
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
