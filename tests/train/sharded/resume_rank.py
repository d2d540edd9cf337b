"""One rank of `test_resume`: go on after the last checkpoint for some updates, save, and be killed in the next."""

import json
import os
import signal
import sys
from concurrent.futures import Future
from pathlib import Path

from gametape.train import checkpoints
from gametape.train.learner import LocalLearner
from tests.train.losses.cases import run_config
from tests.train.sharded.families import adapt, batch_of, policy_of
from tests.train.sharded.launch import open_ranks


def main(family: str, optimizer: str, lora: bool, until: int, directory: Path) -> None:
    ranks = open_ranks()
    policy = policy_of(family)
    if lora:
        adapt(policy)
    config = run_config("loo", portion=60, ttf={"teacher": "ema", "ema": 0.9})
    optim = config.optim.model_copy(update={"name": optimizer, "learning_rate": 1e-2})
    config = config.model_copy(update={"optim": optim})
    learner = LocalLearner(policy, config, ranks=ranks)
    saved = checkpoints.latest(directory / "checkpoints")
    if saved:
        learner.load(saved)
    for step in range(int(saved.name) if saved else 0, until):
        update = learner.update(batch_of(step), step, step)
        if ranks.rank == 0:
            with (directory / "curve.jsonl").open("a") as curve:
                curve.write(json.dumps({"step": step, "loss": update.loss, "gradient": update.gradient}) + "\n")

    def save(place: Path | None) -> "Future[None]":
        return learner.save(ranks.gather(place)[0])

    if ranks.rank == 0:
        writer = checkpoints.CheckpointWriter(directory / "checkpoints", keep=2)
        writer.begin(until, {}, save)
        writer.finish()
    else:
        save(None).result()
    ranks.gather(None)
    learner.optimizer.step = lambda _factor: os.kill(os.getpid(), signal.SIGKILL)
    learner.update(batch_of(until), until, until)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "lora", int(sys.argv[4]), Path(sys.argv[5]))
