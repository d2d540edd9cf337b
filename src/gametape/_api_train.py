"""`gametape.train_policy`: apart from the rest of the public API because it brings torch along."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment
from gametape.record.home import home_directory
from gametape.train.algorithms import make_algorithm
from gametape.train.algorithms.base import Algorithm
from gametape.train.config_file import read_config
from gametape.train.prompts import EnvironmentDataset
from gametape.train.sources import Reward
from gametape.train.training import RunCallbacks, run_training


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
    prints.

    `config` is a `RunConfig`, a mapping with the same keys or a TOML file. `environments` of your own take the place of
    `config.tasks`: a list, of which every fifth is held out, or a function that makes one from a seed. A tiny policy
    learns the words of their prompts and tools; `words` are further ones. `reward` makes the reward of an episode out
    of its score. `algorithm` takes the place of `config.arm`.
    """
    settings = _settings(config, "environments given from Python" if environments is not None else None)
    chosen = make_algorithm(settings) if algorithm is None else algorithm
    chosen = chosen(settings) if isinstance(chosen, type) else chosen
    if reward is not None:
        if settings.rl.asynchronous:
            raise BadInput("rl.asynchronous: a reward given as a function stays in this process; turn it off")
        chosen.reward = reward
    given = reward is not None or algorithm is not None
    return run_training(
        settings,
        Path(out),
        home=home_directory(Path(home) if home is not None else None),
        dataset=None if environments is None else EnvironmentDataset(environments, settings.seed, words),
        algorithm=chosen if given else None,
        callbacks=callbacks,
    )


def _settings(config: RunConfig | Mapping[str, Any] | Path | str, tasks: str | None) -> RunConfig:
    """`tasks` is what stands in the run's configuration where a mapping names none."""
    if isinstance(config, RunConfig):
        return config
    if not isinstance(config, Mapping):
        return read_config(Path(config), [])
    try:
        return RunConfig.model_validate({**({"tasks": tasks} if tasks else {}), **config})
    except ValidationError as error:
        problem = error.errors()[0]
        raise BadInput(f"config: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
