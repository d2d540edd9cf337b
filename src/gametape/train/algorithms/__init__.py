"""The algorithms, one a file, and how a configuration names one."""

import importlib

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.train.algorithms.base import Algorithm
from gametape.train.algorithms.hinted_rollouts import HintedRollouts
from gametape.train.algorithms.opsd import Opsd
from gametape.train.algorithms.rejection import RejectionSampling
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.algorithms.sft import Sft
from gametape.train.algorithms.ttf import GatedTtf, Ttf
from gametape.train.algorithms.turn_reward import TurnReward
from gametape.train.algorithms.warm import Warm

ALGORITHMS: dict[str, type[Algorithm]] = {
    "warm": Warm,
    "sft": Sft,
    "rejection": RejectionSampling,
    "rlvr": Rlvr,
    "rlvr_ttf": Ttf,
    "rlvr_ttf_gated": GatedTtf,
    "rlvr_opsd": Opsd,
    "rlvr_turn_reward": TurnReward,
    "rlvr_hinted_rollouts": HintedRollouts,
}
"""By the arm of a configuration."""


def make_algorithm(config: RunConfig) -> Algorithm:
    """The algorithm that `arm` names: a built-in one, or `module:Class`, whose module must be importable."""
    return (ALGORITHMS.get(config.arm) or _import_algorithm(config.arm))(config)


def _import_algorithm(arm: str) -> type[Algorithm]:
    module_name, _, class_name = arm.partition(":")
    try:
        imported = vars(importlib.import_module(module_name)).get(class_name)
    except ImportError as error:
        hint = "the module must be importable: install it, or set PYTHONPATH"
        raise BadInput(f"arm: {arm}: {error}; {hint}") from error
    if not (isinstance(imported, type) and issubclass(imported, Algorithm)):
        raise BadInput(f"arm: {arm}: {module_name} has no class {class_name} that inherits from Algorithm")
    return imported
