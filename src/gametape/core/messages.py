"""What travels between the parts of a run: small messages that pickle and say which weights they mean."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.base_model import Count, LogProb, PolicyVersion, StrictModel, TokenId
from gametape.core.tokens import length_faults
from gametape.core.validation import raise_faults


class Sampling(StrictModel):
    """How tokens are drawn. `top_k` 0 keeps all of them; temperature 0 is greedy."""

    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    seed: int | None = None


class GenerateRequest(StrictModel):
    """Continue these tokens. An engine whose weights are older than `min_policy_version` must not answer.

    `conversation_id` and `turn` (how many replies it has had) say what this continues, so that an engine can keep what
    it has computed. `grammar`, in EBNF, is what the completion should obey where the engine can see to that.
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
    """What a reply took. Tokens that the engine had already read are in `prompt_tokens` and in `cached_tokens`."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cached_tokens: Count = 0
    cost_usd: Annotated[float, Field(ge=0)] = 0.0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    attempts: Count = 1
    """How often the model was asked until it answered."""


class Generation(StrictModel):
    """The sampled tokens, each with its log-probability and the weights that sampled it.

    The token that ended it is one of them. Log-probabilities are those of the distribution it was drawn from.
    """

    request_id: str
    completion_ids: list[TokenId]
    logprobs: list[LogProb]
    policy_versions: list[PolicyVersion]
    finish: Literal["stop", "length", "cancelled"]
    usage: TokenUsage = TokenUsage()
    constrained: bool = False
    """Whether a grammar was held to."""

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
    """New weights were published: which version, and where an engine finds them."""

    policy_version: PolicyVersion
    location: str


class CommandResult(StrictModel):
    """What came of a command in an environment. `killed_by` names the limit that ended it, if one did."""

    exit_code: int | None
    stdout: str
    stderr: str
    killed_by: str | None = None


class ToolResult(StrictModel):
    """What a tool answers; `failed` marks an answer that says what went wrong. `refused`: the arguments could not be
    used, and nothing was run.

    `finished` ends the rollout: the agent says that it is done. `cpu_seconds` is what the call took in its sandbox.
    """

    content: str
    failed: bool = False
    refused: bool = False
    finished: bool = False
    cpu_seconds: Annotated[float, Field(ge=0)] = 0.0
