"""The messages between the parts of a run: small, picklable, and explicit about weight versions."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.base_model import Count, LogProb, PolicyVersion, StrictModel, TokenId
from gametape.core.tokens import length_faults
from gametape.core.validation import raise_faults


class Sampling(StrictModel):
    """Sampling parameters. `top_k` 0 keeps all tokens; temperature 0 is greedy."""

    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    seed: int | None = None


class GenerateRequest(StrictModel):
    """A request to continue these tokens. An engine whose weights are older than `min_policy_version` must not answer.

    `conversation_id` and `turn` (the number of replies so far) let an engine reuse what it has computed. The completion
    should match `grammar`, in EBNF, where the engine supports that.
    """

    request_id: str
    prompt_ids: list[TokenId]
    max_tokens: Annotated[int, Field(ge=1)]
    sampling: Sampling = Sampling()
    stop_ids: list[TokenId] = Field(default_factory=list)
    min_policy_version: PolicyVersion = 0
    conversation_id: str = ""
    turn: Count = 0
    grammar: str | None = None


class TokenUsage(StrictModel):
    """The cost of a reply. `cached_tokens` are those of `prompt_tokens` that the engine had in its cache, and
    `written_tokens` those that it put there; `reasoning_tokens` are a part of `completion_tokens`."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cached_tokens: Count = 0
    written_tokens: Count = 0
    reasoning_tokens: Count = 0
    cost_usd: Annotated[float, Field(ge=0)] = 0.0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    attempts: Count = 1
    """The number of queries until the model answered."""


class Generation(StrictModel):
    """The sampled tokens, each with its log-probability and the version of the weights that sampled it.

    The stop token is one of them. Log-probabilities are those of the distribution that a token was drawn from.
    """

    request_id: str
    completion_ids: list[TokenId]
    logprobs: list[LogProb]
    policy_versions: list[PolicyVersion]
    finish: Literal["stop", "length", "cancelled"]
    usage: TokenUsage = TokenUsage()
    constrained: bool = False
    """Whether a grammar was enforced."""

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        faults = length_faults(
            len(self.completion_ids),
            {("logprobs",): self.logprobs, ("policy_versions",): self.policy_versions},
        )
        if faults:
            raise_faults(faults)
        return self


class WeightUpdate(StrictModel):
    """New weights: their version, and where an engine finds them."""

    policy_version: PolicyVersion
    location: str


class CommandResult(StrictModel):
    """The result of a command in a workspace. `killed_by` names the limit that ended it, if one did."""

    exit_code: int | None
    stdout: str
    stderr: str
    killed_by: str | None = None


class ToolResult(StrictModel):
    """The result of a tool call. `failed`: the content says what went wrong. `refused`: the arguments were invalid, and
    nothing was run. `finished` ends the rollout. `cpu_seconds` is what the call took in its sandbox."""

    content: str
    failed: bool = False
    refused: bool = False
    finished: bool = False
    cpu_seconds: Annotated[float, Field(ge=0)] = 0.0
