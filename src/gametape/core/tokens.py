"""The tokens of one turn, and the check that a conversation's tokens are append-only.

Nothing is tokenised twice: the sampled tokens are what the next turn reads and what training scores.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field, model_validator

from gametape.core.base_model import Count, ExtensibleModel, LogProb, PolicyVersion, StrictModel, TokenId
from gametape.core.token_prefix import PromptIds, TokenPrefix, as_prefix
from gametape.core.validation import Fault, Location, raise_faults

TOKEN_COLUMNS = {"prompt_token_ids", "completion_token_ids", "logprobs"}
"""The fields of ATIF metrics that have an entry for every token."""

TURN_COLUMNS = {"loss_mask", "policy_versions"}
"""Those of `extra.gametape`."""

MaskBit = Annotated[int, Field(ge=0, le=1)]


class TurnTokens(StrictModel):
    """The tokens of one turn. Every column about the completion has one entry per completion token.

    `loss_mask` is 1 where the policy sampled the token, 0 where the harness put it there. `policy_versions` names the
    weights that sampled each token: they may change in the middle of a turn.
    """

    prompt_ids: PromptIds
    completion_ids: list[TokenId]
    logprobs: list[LogProb] | None = None
    loss_mask: list[MaskBit] | None = None
    policy_versions: list[PolicyVersion] | None = None

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        faults = length_faults(
            len(self.completion_ids),
            {
                ("logprobs",): self.logprobs,
                ("loss_mask",): self.loss_mask,
                ("policy_versions",): self.policy_versions,
            },
        )
        if faults:
            raise_faults(faults)
        return self


class TurnExtra(ExtensibleModel):
    """The fields of a step under `extra.gametape`, for which ATIF has none.

    `compacted` marks a step before which the context was rewritten: token ids start afresh there. `summary` marks the
    request for a summary before that, and its reply: nothing follows them in the same context. `rolled_back_to` is on a
    step that rewinds: the step it went back to. `checkpoint` names the file tree after the step, `work` the agent's
    state, `events` what went wrong or was forbidden. `reasoning_state` is what a server must be sent back together with
    the step's reasoning.
    """

    loss_mask: list[MaskBit] | None = None
    policy_versions: list[PolicyVersion] | None = None
    compacted: bool | None = None
    summary: bool | None = None
    rolled_back_to: Count | None = None
    checkpoint: str | None = None
    work: dict[str, Any] | None = None
    events: list[dict[str, Any]] | None = None
    reasoning_state: dict[str, Any] | None = None


class StepExtra(ExtensibleModel):
    """A step's `extra`: open to all, with one field of ours."""

    gametape: TurnExtra | None = None


class ContextTokens(NamedTuple):
    """The context that one turn was sampled in; None for ids that were not recorded."""

    prompt_ids: Sequence[int] | None
    completion_ids: list[int] | None
    fresh: bool


def length_faults(length: int, columns: Mapping[Location, list[int] | list[float] | None]) -> list[Fault]:
    """Name the columns that do not have one entry per completion token."""
    return [
        (location, f"a list of {length} entries, one per completion token, not {len(column)}")
        for location, column in columns.items()
        if column is not None and len(column) != length
    ]


def is_append_only(turns: Iterable[ContextTokens]) -> bool | None:
    """Whether each prompt begins with the prompt and completion before it, unless its context is fresh.

    None when no turn has ids. False when a turn has only one of prompt and completion: then it cannot be shown.
    """
    context = TokenPrefix()
    seen = False
    for turn in turns:
        if turn.fresh:
            context = TokenPrefix()
        if turn.prompt_ids is None and turn.completion_ids is None:
            continue
        seen = True
        if turn.prompt_ids is None or turn.completion_ids is None:
            return False
        prompt = as_prefix(turn.prompt_ids)
        if not prompt.starts_with(context):
            return False
        context = prompt.extended(turn.completion_ids)
    return True if seen else None
