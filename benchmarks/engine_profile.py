"""Where the time of decode steps goes, kernel by kernel."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def profiled(run: Callable[[], None]) -> list[dict[str, Any]]:
    """The kernels of our own that ran, in order."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "kernel"]
    return sorted((each for each in events if each["name"].startswith("_")), key=lambda each: float(each["ts"]))


def kernel_table(events: list[dict[str, Any]], steps: int) -> list[dict[str, Any]]:
    """Microseconds of a step by kernel. Products are told apart by what ran before them.

    A kernel begins while the one before it ends, and then waits for it. What is counted is from there to its own end,
    so that the parts add up to the step.
    """
    times: dict[str, list[float]] = defaultdict(list)
    before = ""
    ended = float(events[0]["ts"])
    after = {"_attend": "output", "_join": "output", "_gate": "down"}
    for event in events:
        name = event["name"]
        label = f"_project: {after.get(before, 'qkv')}" if name == "_project" else name
        end = float(event["ts"]) + float(event["dur"])
        times[label].append(end - ended)
        before, ended = name, end
    table = [
        {"kernel": name, "us a step": sum(spent) / steps, "launches a step": len(spent) / steps}
        for name, spent in times.items()
    ]
    table.sort(key=lambda line: -float(line["us a step"]))
    return [*table, {"kernel": "whole step", "us a step": sum(map(sum, times.values())) / steps}]
