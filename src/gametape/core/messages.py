"""What travels between the parts of a run: small messages that pickle and say which weights they mean."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.model import Closed, LogProb, PolicyVersion, TokenId
from gametape.core.problems import refuse
from gametape.core.tokens import uneven


class GenerateRequest(Closed):
    """Continue these tokens. An engine whose weights are older than `min_policy_version` must not answer."""

    request_id: str
    prompt_ids: list[TokenId]
    max_tokens: Annotated[int, Field(ge=1)]
    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    stop_ids: list[TokenId] = Field(default_factory=list)
    seed: int | None = None
    min_policy_version: PolicyVersion = 0


class Generation(Closed):
    """The sampled tokens, each with its log-probability and the weights that sampled it."""

    request_id: str
    completion_ids: list[TokenId]
    logprobs: list[LogProb]
    policy_versions: list[PolicyVersion]
    finish: Literal["stop", "length", "cancelled"]

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        faults = uneven(
            len(self.completion_ids),
            {("logprobs",): self.logprobs, ("policy_versions",): self.policy_versions},
        )
        if faults:
            refuse(faults)
        return self


class WeightUpdate(Closed):
    """New weights were published: which version, and where an engine finds them."""

    policy_version: PolicyVersion
    location: str


class CommandResult(Closed):
    """What came of a command in an environment. `killed_by` names the limit that ended it, if one did."""

    exit_code: int | None
    stdout: str
    stderr: str
    killed_by: str | None = None


class ToolResult(Closed):
    """What a tool answers; `failed` marks an answer that says what was wrong with the call."""

    content: str
    failed: bool = False
