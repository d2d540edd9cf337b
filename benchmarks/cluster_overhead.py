"""What going through Ray costs with everything on one node: the same asynchronous run with pipes and with Ray between
its parts, one sampler and one learner each, by turns.

    sh scripts/setup-ray.sh
    python benchmarks/cluster_overhead.py [--rounds 3] [--updates 24] [--save]

Tokens are those learned from in the updates after the first third, by the run's own log, so that the time in which
processes begin does not count. On a machine that does other work too only the ratio of neighbouring rounds says
anything, and little.
"""

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.cluster.faulty_run import CONFIG  # noqa: E402
from tests.ray_cluster import missing, own_network, start_train  # noqa: E402

from gametape.core.config import RunConfig  # noqa: E402
from gametape.train.run_directory import RunDirectory, read_metrics  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "cluster_overhead.txt"
CHANGES: dict[str, Any] = {
    "arm": "rlvr",
    "ranks": 1,
    "tiny": {"layers": 3, "width": 96, "heads": 4, "window": 1024},
    "rl": {"groups": 4, "group_size": 8, "asynchronous": True},
    "checkpoint": {"every": 1000},
    "cluster": {"samplers": 1, "object_store_mb": 100},
}


def tokens_a_second(root: Path, network: str, updates: int, words: list[str]) -> float:
    """Of one run from its beginning to its end."""
    directory = RunDirectory(root)
    directory.create(RunConfig.model_validate({**CONFIG, **CHANGES, "episodes": 32 * updates}))
    process = start_train(network, "--resume", root, *words)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    lines = [line for line in read_metrics(directory.metrics) if line["kind"] == "update"]
    first, last = lines[len(lines) // 3], lines[-1]
    rollouts = lines[len(lines) // 3 + 1 :]
    return sum(line["tokens"] for line in rollouts) / (last["seconds"] - first["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=24)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    if why := missing():
        sys.exit(why)
    lines = [
        f"python benchmarks/cluster_overhead.py --rounds {options.rounds} --updates {options.updates}",
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}",
        "tokens learned from a second: with pipes, with Ray, ratio",
    ]
    ratios = []
    with own_network() as network, tempfile.TemporaryDirectory(prefix="gametape-overhead-") as place:
        for number in range(options.rounds):
            pipes = tokens_a_second(Path(place) / f"pipes-{number}", network, options.updates, [])
            ray = tokens_a_second(Path(place) / f"ray-{number}", network, options.updates, ["--ray", "local"])
            ratios.append(ray / pipes)
            lines.append(f"{pipes:.0f}, {ray:.0f}, {ratios[-1]:.2f}")
            print(lines[-1], flush=True)
    lines.append(f"median ratio {median(ratios):.2f}")
    print("\n".join(lines))
    if options.save:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
