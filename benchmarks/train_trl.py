"""TRL's side of `benchmarks/train.py`: its own `train()` over a batch that is handed to it in place of generation."""

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from train_batch import CASES, LEARNING_RATE, Case, Drawn, drawn, network_in, resident_mb, told


def main() -> None:
    with contextlib.redirect_stdout(sys.stderr):
        found = group_step(CASES[sys.argv[1]], Path(sys.argv[2]))
    print(json.dumps(found))


def group_step(case: Case, model: Path) -> dict[str, Any]:
    batch, clock = drawn(case), _Clock()
    handed = _as_trl_has_it(batch)

    class Handed(GRPOTrainer):  # type: ignore[misc]
        def _prepare_inputs(self, _generation_batch: Any) -> dict[str, Tensor]:
            return handed

    with tempfile.TemporaryDirectory() as scratch:
        trainer = Handed(
            model=network_in(model),
            args=_settings(case, scratch),
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            train_dataset=Dataset.from_dict({"prompt": ["-"] * case.rollouts}),
            processing_class=AutoTokenizer.from_pretrained(model),
            callbacks=[clock],
        )
        before_mb = resident_mb("VmRSS")
        trainer.train()
    norm = next(row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row)
    return told(batch, clock.seconds, before_mb, norm)


class _Clock(TrainerCallback):  # type: ignore[misc]
    """How long the last step took."""

    started, seconds = 0.0, 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.started = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds = time.perf_counter() - self.started


def _settings(case: Case, scratch: str) -> GRPOConfig:
    """What it is by default, but for float32, the loss, and the rate."""
    return GRPOConfig(
        scratch,
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=case.rollouts,
        num_generations=case.rollouts,
        max_completion_length=case.longest,
        loss_type="dr_grpo",
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        max_steps=2,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def _as_trl_has_it(batch: Drawn) -> dict[str, Tensor]:
    prompt_BT = torch.tensor([batch.prompt] * len(batch.completions))
    completions = [torch.tensor(ids) for ids in batch.completions]
    mask_BT = pad_sequence([torch.ones_like(ids) for ids in completions], batch_first=True)
    return {
        "prompt_ids": prompt_BT,
        "prompt_mask": torch.ones_like(prompt_BT),
        "completion_ids": pad_sequence(completions, batch_first=True),
        "completion_mask": mask_BT,
        "advantages": torch.tensor(batch.advantages),
        "num_items_in_batch": mask_BT.sum(),
    }


if __name__ == "__main__":
    main()
