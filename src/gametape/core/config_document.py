"""A run's configuration as a document, before it is checked: current names for old keys, and defaults that go by the
kind of model."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

OLD_KEYS: Mapping[str, Mapping[str, str]] = {
    "warm": {"made_up": "made_up_hint_share"},
    "optim": {"portion": "micro_batch_tokens"},
    "rl": {"length": "normalizer_tokens"},
    "ttf": {
        "length": "normalizer_tokens",
        "alone": "hint_only_lr_scale",
        "per_group": "annotated_per_group",
        "mixed": "annotate_mixed_groups",
        "stored": "replay_capacity",
        "learn": "objective",
        "spoiled": "control_share",
    },
    "eval": {"rehearsed": "forgetting_probe_size"},
    "alarms": {"lost": "infra_error_rate", "mismatch": "logprob_mismatch"},
    "reward": {"recorded": "recorded_trajectories"},
}
"""By table: the former names of keys. Files that use them still load."""


def current_key(table: str, key: str) -> str:
    return OLD_KEYS.get(table, {}).get(key, key)


def with_current_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with every old key under its current name. Of a key that stands under both names the old one is
    left as it is, and is then refused as unknown."""
    return {
        table: {key if (new := current_key(table, key)) in content else new: value for key, value in content.items()}
        if isinstance(content, Mapping)
        else content
        for table, content in document.items()
    }


LARGER_MODEL_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "optim": {"learning_rate": 5e-6, "warmup": 10},
    "rl": {"normalizer_tokens": 2048, "turn_tokens": 1024},
    "ttf": {"normalizer_tokens": 256, "replay": 1.0},
    "eval": {"episodes": 64},
}
"""By table: defaults of runs with another policy than a tiny one, whose turns are a few words long."""


def has_tiny_policy(document: Mapping[str, Any]) -> bool:
    """Whether a configuration is one of a tiny policy: it makes one, or goes on with the weights of one in worlds."""
    model, tasks = document.get("model", "tiny"), str(document.get("tasks", ""))
    return model == "tiny" or (tasks.startswith("worlds:") and model != "smollm2")


def with_defaults_by_model(document: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration in which what was not set has the default for its kind of model."""
    filled = dict(document)
    for table, defaults in () if has_tiny_policy(document) else LARGER_MODEL_DEFAULTS.items():
        section = filled.get(table, {})
        if isinstance(section, BaseModel):
            unset = {key: value for key, value in defaults.items() if key not in section.model_fields_set}
            filled[table] = section.model_copy(update=unset)
        elif isinstance(section, Mapping):
            filled[table] = {**defaults, **section}
    return filled
