"""What it costs when a part of a run on a cluster dies or hangs, by kind of fault, on one node without a GPU.

    sh scripts/setup-ray.sh
    python benchmarks/cluster_faults.py [--faults 12] [--seed 0] [--save]

One run after the other, on a network of its own (only root can make one): seeded faults, each after some more updates,
and the next one when the run has got over it. At the end every prompt must be accounted for: learned from once, dropped
as too old, or under way. Times are dominated by how long processes take to begin; `--save` writes the table beside the
other results.
"""

import argparse
import os
import platform
import random
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.cluster.faulty_run import CONFIG, FAULTS, HEARTBEAT, FaultKind, FaultyRun, Recovery  # noqa: E402
from tests.ray_cluster import missing, own_network  # noqa: E402
from tests.train.ledger import check_ledger  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "cluster_faults.txt"


def schedule(faults: int, seed: int) -> list[FaultKind]:
    """Each kind as often as any other, as far as it goes, in an order of chance."""
    kinds = [FAULTS[number % len(FAULTS)] for number in range(faults)]
    random.Random(seed).shuffle(kinds)
    return kinds


def table(recoveries: list[Recovery]) -> str:
    by_kind: dict[FaultKind, list[Recovery]] = defaultdict(list)
    for recovery in recoveries:
        by_kind[recovery.kind].append(recovery)
    rows = [
        "| fault | times | noticed after (s): median, most | recovered after (s): median, most | "
        "prompts played again | updates computed again |",
        "|---|---|---|---|---|---|",
    ]
    for kind in FAULTS:
        if found := by_kind.get(kind):
            noticed, recovered = [one.noticed for one in found], [one.recovered for one in found]
            seen = f"{median(noticed):.1f}, {max(noticed):.1f}" if any(noticed) else "by whoever starts it again"
            rows.append(
                f"| {kind} | {len(found)} | {seen} | "
                f"{median(recovered):.1f}, {max(recovered):.1f} | {sum(one.requests for one in found)} | "
                f"{sum(one.updates for one in found)} |"
            )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    if why := missing():
        sys.exit(why)
    recoveries: list[Recovery] = []
    with (
        own_network() as network,
        tempfile.TemporaryDirectory(prefix="gametape-faults-") as place,
        FaultyRun(Path(place) / "run", network, options.seed) as run,
    ):
        for kind in schedule(options.faults, options.seed):
            recoveries.append(run.suffer(kind))
            print(recoveries[-1], flush=True)
        counts = check_ledger(run.finish(), run.root)
    cluster = CONFIG["cluster"]
    text = "\n".join(
        [
            f"python benchmarks/cluster_faults.py --faults {options.faults} --seed {options.seed}",
            f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}",
            f"1 node, {cluster['samplers']} samplers, {CONFIG['ranks']} ranks, heartbeat {HEARTBEAT:g} s, "
            f"a checkpoint every {CONFIG['checkpoint']['every']} updates",
            "",
            table(recoveries),
            "",
            f"prompts: {dict(counts)}; none lost, none learned from twice",
        ]
    )
    print(text)
    if options.save:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
