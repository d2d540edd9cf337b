"""The registered grid of `evidence.py`: models, warm starts, regimes and arms of one TOML file, and the runs that they
make, in the order in which they are made."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """One run of `gametape train`, by its name. `after` names the run whose weights it begins with."""

    name: str
    kind: str
    """warm, pilot or cell."""
    seed: int
    settings: Mapping[str, Any]
    after: str = ""
    regime: str = ""
    arm: str = ""


@dataclass(frozen=True)
class Grid:
    """What the file says. Tables of settings have the keys of a run's configuration."""

    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "Grid":
        return cls(tomllib.loads(path.read_text()))

    @property
    def regimes(self) -> Mapping[str, Mapping[str, Any]]:
        regimes: Mapping[str, Mapping[str, Any]] = self.document["regimes"]
        return regimes

    def arms_of(self, regime: str) -> Sequence[str]:
        arms: Sequence[str] = self.regimes[regime]["arms"]
        return arms

    def warm_jobs(self) -> list[Job]:
        """Those that a regime begins with, each once."""
        wanted = dict.fromkeys(str(regime["warm"]) for regime in self.regimes.values())
        return [self._warm(name) for name in wanted]

    def _warm(self, name: str) -> Job:
        table = self.document["warm"][name]
        settings = {**self.document.get("common", {}), **table["settings"], "arm": "warm", "tasks": table["tasks"]}
        return Job(f"warm-{name}", "warm", 0, {**settings, "model": table["model"]})

    def pilot_jobs(self) -> list[Job]:
        """In each regime, some of one arm."""
        pilot = self.document["pilot"]
        budget = {"episodes": pilot["episodes"]}
        return [
            self._run(f"pilot-{regime}-{seed}", "pilot", regime, pilot["arm"], seed, budget)
            for seed in pilot["seeds"]
            for regime in self.regimes
        ]

    def cells(self, flops: Mapping[str, int]) -> Iterator[Job]:
        """Seed by seed, so that wherever the time ends all arms have the same seeds; the most wanted arms come first.
        The budget of operations is that of the regime, the same for every arm."""
        most = max(self._seeds(regime, arm) for regime in self.regimes for arm in self.arms_of(regime))
        for number in range(most):
            for regime, table in self.regimes.items():
                for arm in self.arms_of(regime):
                    if number < self._seeds(regime, arm):
                        seed = self.document["seeds"]["first"] + number
                        budget = {"flops": flops[regime], "episodes": table["episodes_max"]}
                        yield self._run(f"{regime}-{arm}-{seed}", "cell", regime, arm, seed, budget)

    def _seeds(self, regime: str, arm: str) -> int:
        seeds = self.document["seeds"]
        wanted: int = seeds["main"] if arm in seeds["main_arms"] else seeds["other"]
        return min(wanted, int(self.regimes[regime].get("seeds_most", wanted)))

    def _run(self, name: str, kind: str, regime: str, arm: str, seed: int, budget: Mapping[str, Any]) -> Job:
        table = self.regimes[regime]
        settings = {
            **self.document.get("common", {}),
            **self.document.get("rollouts", {}),
            **table["settings"],
            "tasks": table["tasks"],
            **self.document["arms"][arm],
            **budget,
        }
        return Job(name, kind, seed, settings, f"warm-{table['warm']}", regime, arm)


def as_changes(settings: Mapping[str, Any]) -> list[str]:
    """As `--set` takes them; TOML's words for true and false."""
    said = {True: "true", False: "false"}
    return [
        f"{key}={said[value] if isinstance(value, bool) else repr(value) if isinstance(value, str) else value}"
        for key, value in settings.items()
    ]
