"""Where every prompt of a run with `CountingArm` has ended up, from what is on disk."""

from collections import Counter
from pathlib import Path
from typing import Any

from gametape.train import checkpoints
from gametape.train.run_directory import read_metrics


def check_ledger(answer: dict[str, Any], root: Path) -> Counter[str]:
    """Every request is in exactly one place; returns how many there are in which, long ones apart."""
    updates = [line for line in read_metrics(root / "metrics.jsonl") if line["kind"] == "update"]
    last = checkpoints.latest(root / "checkpoints")
    assert last is not None
    state = checkpoints.load_state(last)
    progress = state["progress"]
    places = {
        "learned": [number for line in updates for number in line["requests"]],
        "stale": [number for line in updates for number in line["dropped_requests"]],
        "waiting": [group["request"]["number"] for group in progress["waiting"]],
        "under way": [one["number"] for one in progress["ordered"] if one["purpose"] == "train"],
    }
    everywhere = [number for numbers in places.values() for number in numbers]
    assert sorted(everywhere) == list(range(progress["requests"]))
    finished = [*places["learned"], *places["stale"], *places["waiting"]]
    assert sorted(state["coach"]["done"]) == sorted(finished)
    assert state["coach"]["begun"] == state["coach"]["done"]
    assert 2 * len([*places["learned"], *places["stale"]]) == answer["episodes"] == progress["episodes"]
    assert 2 * len(places["stale"]) == answer["dropped"]
    assert [line["step"] for line in updates] == list(range(1, progress["step"] + 1))
    long = {
        number for line in updates for number, turns in zip(line["requests"], line["turns"], strict=True) if turns > 6
    }
    counts = Counter({place: len(numbers) for place, numbers in places.items()})
    counts["learned, long"] = len(long)
    return counts
