"""Opens the model that `gametape models test` and `gametape init` ask what it can do."""

import asyncio
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gametape.core.errors import BadInput, MissingDependency

if TYPE_CHECKING:
    from gametape.core.user_config import UserConfig
    from gametape.engines.conversation import Model
    from gametape.engines.model_names import ScriptFactory
    from gametape.engines.model_report import ModelReport


def run_model_test(
    name: str, home: Path, local_only: bool, seconds: float, config: "UserConfig | None" = None
) -> "ModelReport":
    """The report on a model. Raises where the name is bad, the model cannot be had, or it takes too long.

    Where no configuration is given, the user's file is read.
    """
    from gametape.engines.egress_policy import EgressPolicy
    from gametape.engines.model_aliases import expand_alias, provider_table, with_options
    from gametape.engines.model_names import resolve_model
    from gametape.engines.model_route import split_route
    from gametape.record.config_file import read_user_config

    if not name.strip():
        raise BadInput("the name is empty; give a model")
    if len(split_route(name)) > 1:
        raise BadInput(f"{name}: a route is two models; test each of them")
    config, egress = config or read_user_config(), EgressPolicy(local_only=local_only)
    table = provider_table(config)
    full = expand_alias(name, config, table).name
    model = resolve_model(name, home, egress, _scripts(full, home), config)
    open_reasoner: Callable[[], Model] | None = None
    if table.is_server_name(full):

        def open_reasoner() -> "Model":
            return resolve_model(with_options(full, {"reasoning": "low"}), home, egress, config=config)

    return asyncio.run(_report(model, open_reasoner, seconds))


async def _report(model: "Model", open_reasoner: "Callable[[], Model] | None", seconds: float) -> "ModelReport":
    from gametape.engines.model_report import report_model

    try:
        async with asyncio.timeout(seconds):
            return await report_model(model, open_reasoner)
    except TimeoutError:
        raise MissingDependency(f"{model.name} was not done with the test within {seconds:g} s") from None
    finally:
        await model.close()


def _scripts(name: str, home: Path) -> "dict[str, ScriptFactory]":
    """The scripted policies that are written for a task: over a small task that is made for the test."""
    from gametape.agent.scripted_policies import SCRIPTED_POLICIES

    if name.removeprefix("scripted:") not in SCRIPTED_POLICIES or not name.startswith("scripted:"):
        return {}
    from gametape.tasks.katas.generator import make_katas
    from gametape.tasks.loader import load_task

    with tempfile.TemporaryDirectory(prefix="gametape-test-") as scratch:
        (directory,) = make_katas(Path(scratch) / "katas", 1, 0)
        task = load_task(directory, home, lambda _text: None)
    return {policy: partial(script, task) for policy, script in SCRIPTED_POLICIES.items()}
