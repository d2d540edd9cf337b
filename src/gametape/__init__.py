"""gametape trains and runs autonomous coding agents on feedback that can be checked.

What is listed in `__all__` is the public API: documented in docs/api.md, loaded on first use. `import gametape` itself
imports nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gametape.core.version import VERSION as __version__

if TYPE_CHECKING:
    from gametape._api import check_task as check_task
    from gametape._api import evaluate as evaluate
    from gametape._api import load_task as load_task
    from gametape._api import mine_tasks as mine_tasks
    from gametape._api import run_episode as run_episode
    from gametape._api import solve_task as solve_task
    from gametape._api import verify_workspace as verify_workspace
    from gametape._api_train import train_policy as train_policy
    from gametape.agent.episode import Episode as Episode
    from gametape.agent.solve import SolveResult as SolveResult
    from gametape.agent.state_environment import StateEnvironment as StateEnvironment
    from gametape.agent.tools.function_tool import tool as tool
    from gametape.core.config import RunConfig as RunConfig
    from gametape.core.environment import EpisodeScore as EpisodeScore
    from gametape.core.environment import TurnMark as TurnMark
    from gametape.core.errors import BadInput as BadInput
    from gametape.core.errors import GametapeError as GametapeError
    from gametape.core.errors import MissingDependency as MissingDependency
    from gametape.core.hint import Hint as Hint
    from gametape.core.messages import ToolResult as ToolResult
    from gametape.core.protocols import Environment as Environment
    from gametape.core.protocols import Tool as Tool
    from gametape.core.protocols import Workspace as Workspace
    from gametape.core.trajectory import Trajectory as Trajectory
    from gametape.core.verdict import Verdict as Verdict
    from gametape.record.loaded_task import LoadedTask as LoadedTask
    from gametape.redteam.admission import Admission as Admission
    from gametape.tasks.mining.summary import MiningSummary as MiningSummary
    from gametape.train.algorithms.base import Algorithm as Algorithm
    from gametape.train.rollouts import RolloutGroup as RolloutGroup

_HOMES = {
    "gametape._api": (
        "check_task",
        "evaluate",
        "load_task",
        "mine_tasks",
        "run_episode",
        "solve_task",
        "verify_workspace",
    ),
    "gametape._api_train": ("train_policy",),
    "gametape.agent.episode": ("Episode",),
    "gametape.agent.solve": ("SolveResult",),
    "gametape.agent.state_environment": ("StateEnvironment",),
    "gametape.agent.tools.function_tool": ("tool",),
    "gametape.core.config": ("RunConfig",),
    "gametape.core.environment": ("EpisodeScore", "TurnMark"),
    "gametape.core.errors": ("BadInput", "GametapeError", "MissingDependency"),
    "gametape.core.hint": ("Hint",),
    "gametape.core.messages": ("ToolResult",),
    "gametape.core.protocols": ("Environment", "Tool", "Workspace"),
    "gametape.core.trajectory": ("Trajectory",),
    "gametape.core.verdict": ("Verdict",),
    "gametape.record.loaded_task": ("LoadedTask",),
    "gametape.redteam.admission": ("Admission",),
    "gametape.tasks.mining.summary": ("MiningSummary",),
    "gametape.train.algorithms.base": ("Algorithm",),
    "gametape.train.rollouts": ("RolloutGroup",),
}
"""The modules that define the public names."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gametape' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
