"""The checks of requests that every engine over a `Stepper` makes."""

from collections.abc import Sequence

from gametape.core.errors import BadInput
from gametape.engines.errors import EngineError
from gametape.engines.torch.jobs import EngineJob
from gametape.engines.torch.stepper import Stepper


def check_ids(stepper: Stepper, ids: Sequence[int]) -> None:
    """Raise `BadInput` for ids outside of the vocabulary, and for no ids."""
    vocabulary = stepper.decoder.spec.vocabulary
    if not ids or max(ids) >= vocabulary or min(ids) < 0:
        raise BadInput(f"a prompt has one token or more, each with an id below {vocabulary}")


def check_score_range(stepper: Stepper, ids: Sequence[int], start: int) -> None:
    check_ids(stepper, ids)
    if not 1 <= start < len(ids):
        raise BadInput(f"of {len(ids)} ids those from 1 up to the last can be scored, not from {start}")


def admission_error(stepper: Stepper, job: EngineJob, min_version: int = 0) -> EngineError | None:
    """Why this job cannot be admitted: weights that are too old, or too little memory."""
    if stepper.version < min_version:
        return EngineError("refused", f"weights {min_version} or newer were asked for; these are {stepper.version}")
    if job.max_length > stepper.capacity:
        return EngineError("refused", f"{job.max_length} tokens do not fit into memory for {stepper.capacity}")
    return None
