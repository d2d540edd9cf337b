"""A learner on a cluster whose ranks are killed between updates, in an update and while a checkpoint is written; and
one in this process that nothing happens to. Prints how far their weights are apart. Run as a program."""

import json
import os
import signal
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

from gametape.cluster.access import LOCAL, prepare_ray

prepare_ray(LOCAL)

from gametape.cluster.event_log import EVENTS, EventLog  # noqa: E402
from gametape.cluster.ray_learner import RayLearner  # noqa: E402
from gametape.cluster.ray_parts import open_cluster  # noqa: E402
from gametape.core.config import RunConfig  # noqa: E402
from gametape.engines.torch.device import CPU_FLOAT32  # noqa: E402
from gametape.record.json_lines import read_lines  # noqa: E402
from gametape.train.algorithms import make_algorithm  # noqa: E402
from gametape.train.checkpoints import CheckpointWriter  # noqa: E402
from gametape.train.learner import LocalLearner  # noqa: E402
from gametape.train.policy import create_tiny_policy, load_policy, outline_policy  # noqa: E402
from gametape.train.run_directory import RunDirectory  # noqa: E402
from gametape.train.run_parts import RunContext  # noqa: E402
from tests.train.sharded.families import batch_of  # noqa: E402

CONFIG: dict[str, Any] = {
    "arm": "rlvr",
    "tasks": "worlds:easy",
    "ranks": 2,
    "tiny": {"layers": 2, "width": 32, "heads": 2, "window": 128},
    "optim": {"micro_batch_tokens": 200, "learning_rate": 1e-3},
    "cluster": {"samplers": 1, "heartbeat_seconds": 8, "object_store_mb": 100},
}
UPDATES = 7


def kill(directory: RunDirectory, rank: int) -> None:
    latest = [event for event in read_lines(directory.root / EVENTS) if event["event"] == "up"][-1]
    os.kill(latest["pids"][rank], signal.SIGKILL)


def learn_through_kills(run: RunContext) -> dict[str, Any]:
    directory, writer = run.directory, CheckpointWriter(run.directory.checkpoints, keep=1)
    learner = RayLearner(run, CPU_FLOAT32, count(1), EventLog(directory.root))
    try:
        for step in range(UPDATES):
            if step == 3:  # in an update
                threading.Timer(0.01, kill, (directory, 0)).start()
            learner.update(batch_of(step), step, step)
            if step == 1:
                writer.begin(2, {}, learner.save)
                writer.finish()
                kill(directory, 1)  # between updates, from a checkpoint on
            if step == 4:
                writer.begin(5, {}, learner.save)
                kill(directory, 1)  # while it is written, or just after
        assert writer.finish() == directory.checkpoints / "00000005"
        weights = dict(learner.publish())
        learner.load(directory.checkpoints / "00000005")
        for step in range(5, UPDATES):
            learner.update(batch_of(step), step, step)
        from_checkpoint = dict(learner.publish())
        scores = learner.score(batch_of().samples)
    finally:
        learner.close()
    return {"weights": weights, "from checkpoint": from_checkpoint, "scores": scores}


def main(place: Path) -> None:
    directory = RunDirectory(place)
    config = RunConfig.model_validate(CONFIG)
    directory.create(config)
    create_tiny_policy(directory.start, config.tiny, seed=3)
    algorithm, none = make_algorithm(config), None
    context: Any = (config, directory, place, outline_policy(directory.start, CPU_FLOAT32), none, algorithm, none)
    alone = LocalLearner(load_policy(directory.start), config)
    begun = {name: tensor.clone() for name, tensor in alone.publish().items()}
    for step in range(UPDATES):
        alone.update(batch_of(step), step, step)
    with open_cluster(LOCAL, config):
        found = learn_through_kills(RunContext(*context))
    expected = alone.publish()
    apart = {
        name: max(float((found[name][key] - tensor).abs().max()) for key, tensor in expected.items())
        for name in ("weights", "from checkpoint")
    }
    apart["scores"] = max(
        float((one - other).abs().max())
        for one, other in zip(found["scores"], alone.score(batch_of().samples), strict=True)
    )
    moved = max(float((begun[name] - tensor).abs().max()) for name, tensor in expected.items())
    lost = sum(event["event"] == "lost" for event in read_lines(directory.root / EVENTS))
    print(json.dumps({"apart": apart, "moved": moved, "lost": lost}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
