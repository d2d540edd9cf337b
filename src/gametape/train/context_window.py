"""The window that a run gives its policy: the model's own, a shorter one, or a longer one with scaled positions.

It stands in the configuration of the run's first weights, so that the learner, the sampler, every checkpoint and every
program that loads one go by it.
"""

from pathlib import Path
from typing import Any

from transformers import AutoConfig

from gametape.core.config import ContextConfig
from gametape.core.errors import BadInput

_UNSCALED = ("default", "")


def read_model_config(directory: Path, context: ContextConfig) -> Any:
    """The configuration of a model of transformers, with the window that the run asks for."""
    try:
        config: Any = AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise BadInput(f"{directory} is not a model that can be loaded: {reason}") from error
    text = config.get_text_config()
    own = int(text.max_position_embeddings)
    wanted = context.tokens or own
    if wanted > own:
        text.rope_parameters = _scaled(text, own, wanted, context.rope_scaling)
    text.max_position_embeddings = wanted
    return config


def _scaled(text: Any, own: int, wanted: int, kind: str) -> dict[str, Any]:
    """Rotary positions for a longer window."""
    longer = f"context.tokens: {wanted} is more than this model's window of {own}"
    if kind == "none":
        raise BadInput(f"{longer}; give context.rope_scaling = yarn or linear too, or at most {own}")
    rope = getattr(text, "rope_parameters", None) or {}
    if "rope_theta" not in rope:
        raise BadInput(f"{longer}, and it has no rotary positions that could be scaled; give at most {own}")
    if (scaled := rope.get("rope_type", "")) not in _UNSCALED:
        raise BadInput(f"{longer}, which has scaled positions already ({scaled}); give at most {own}")
    lengths = {"original_max_position_embeddings": own} if kind == "yarn" else {}
    return {"rope_theta": rope["rope_theta"], "rope_type": kind, "factor": wanted / own, **lengths}
