"""`gametape.train_policy`: apart from the rest of the public API because it brings torch along."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gametape.core.config import RunConfig
from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment
from gametape.record.home import home_directory
from gametape.train.algorithms import make_algorithm
from gametape.train.algorithms.base import Algorithm
from gametape.train.config_file import config_from_mapping, read_config
from gametape.train.early_checks import ENVIRONMENTS_FROM_PYTHON
from gametape.train.prompts import EnvironmentDataset
from gametape.train.sources import Reward
from gametape.train.training import RunCallbacks, run_training

_MEMBERS = ("name", "user_prompt", "system_prompt", "max_turns", "tools", "reset", "score")


def train_policy(
    config: RunConfig | Mapping[str, Any] | Path | str,
    out: Path | str,
    *,
    environments: Sequence[Environment] | Callable[[int], Environment] | None = None,
    words: Sequence[str] = (),
    reward: Reward | None = None,
    algorithm: Algorithm | type[Algorithm] | None = None,
    callbacks: RunCallbacks | None = None,
    home: Path | str | None = None,
) -> dict[str, Any]:
    """Train a policy in the directory `out`, or go on with the run that is there. Returns what `gametape train --json`
    prints. A run that goes on may be longer (`episodes`, `flops`) and be observed otherwise; what would make another
    experiment of it is refused.

    `config` is a `RunConfig`, a mapping with the same keys or a TOML file. `environments` of your own take the place of
    `config.tasks`: a list, of which every fifth is held out, or a function that makes one from a seed. A tiny policy
    learns the words of their prompts and tools; `words` are further ones. `reward` makes the reward of an episode out
    of its score. `algorithm` takes the place of `config.arm`.
    """
    settings = _settings(config, ENVIRONMENTS_FROM_PYTHON if environments is not None else None)
    settings, chosen = _algorithm(settings, algorithm)
    if reward is not None:
        if settings.rl.asynchronous:
            raise BadInput("rl.asynchronous: a reward given as a function stays in this process; turn it off")
        chosen.reward = _checked_reward(reward)
    objects = {"environments": environments, "reward": reward, "algorithm": algorithm}
    given = [name for name, value in objects.items() if value is not None]
    return run_training(
        settings,
        Path(out),
        home=home_directory(Path(home) if home is not None else None),
        dataset=None if environments is None else _dataset(environments, settings.seed, words),
        algorithm=chosen if reward is not None or algorithm is not None else None,
        callbacks=callbacks,
        given=given,
    )


def _settings(config: RunConfig | Mapping[str, Any] | Path | str, tasks: str | None) -> RunConfig:
    """`tasks` is what stands in the run's configuration where a mapping names none."""
    if isinstance(config, RunConfig):
        return config
    if not isinstance(config, Mapping):
        return read_config(Path(config), [])
    return config_from_mapping({**({"tasks": tasks} if tasks else {}), **config})


def _algorithm(settings: RunConfig, given: Algorithm | type[Algorithm] | None) -> tuple[RunConfig, Algorithm]:
    """The algorithm, and the configuration that names it."""
    kind = given if isinstance(given, type) else type(given)
    if given is not None and not issubclass(kind, Algorithm):
        raise BadInput(f"algorithm: {kind.__qualname__} does not inherit from gametape.Algorithm")
    if given is None:
        return settings, make_algorithm(settings)
    settings = settings.model_copy(update={"arm": f"{kind.__module__}:{kind.__qualname__}"})
    return settings, given(settings) if isinstance(given, type) else given


def _dataset(
    given: Sequence[Environment] | Callable[[int], Environment], seed: int, words: Sequence[str]
) -> EnvironmentDataset:
    if callable(given) and not isinstance(given, type):
        samples = [given(0)]
    elif isinstance(given, Sequence):
        samples = list(given)
    else:
        raise BadInput("environments: give a list of environments, or a function that makes one from a seed")
    if not samples:
        raise BadInput("environments: the list is empty")
    for number, environment in enumerate(samples):
        if missing := [name for name in _MEMBERS if not hasattr(environment, name)]:
            raise BadInput(f"environments: number {number}, {environment!r}, is no environment: it has no {missing[0]}")
        if not environment.tools():
            raise BadInput(f"environments: {environment.name} has no tools")
    return EnvironmentDataset(given, seed, words)


def _checked_reward(reward: Reward) -> Reward:
    """The same function, which must return a finite number."""
    if not callable(reward):
        raise BadInput(f"reward: give a function from an EpisodeScore to a number, not {reward!r}")

    def checked(score: EpisodeScore) -> float:
        value = reward(score)
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise BadInput(f"reward: {value!r} is not a finite number")
        return float(value)

    return checked
