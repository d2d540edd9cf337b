"""A hint: one line said at the turn where it went wrong, and the proof that it helps."""

from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from gametape.core.base_model import Count, LogProb, Number, PolicyVersion, StrictModel, TokenId
from gametape.core.validation import raise_faults

HintSource = Literal[
    "tool_error",
    "traceback",
    "types",
    "lint",
    "policy",
    "verifier",
    "integrity",
    "monitor",
    "repetition",
    "judge",
    "counterfactual",
    "given",
]


HintAuthor = Literal["message", "rule", "judge", "policy", "person"]
"""Who put it into words: the message that showed the fault, a rule, a judge model, the policy itself, a person."""


class HintGate(StrictModel):
    """One test a hint was put to, and the number it was decided on. `forks` and `tokens` are what it took."""

    passed: bool
    value: Number
    detail: str = ""
    forks: Count = 0
    tokens: Count = 0


class HintGates(StrictModel):
    """None for a gate that was not run.

    G0: it changes the model's mind. G1: what the model then prefers is well-formed. G2: it leads to success.
    """

    g0: HintGate | None = None
    g1: HintGate | None = None
    g2: HintGate | None = None


class HintVersions(StrictModel):
    """The weights that sampled the target span, and those that read the hint."""

    policy: PolicyVersion
    teacher: PolicyVersion


class Hint(StrictModel):
    """What to say before a target turn, given in text and in the tokens that are spliced in.

    `span` is half-open and counts the completion tokens of step `step`. `text` states a rule in one line,
    never the answer; hints of one `type` are pooled when they are judged. `noticed` is the step that showed the
    fault, `evidence` what it showed, and `refused` why the hint is not used in spite of its gates. The two columns of
    log-probabilities are of the span's tokens, before and after the hint; `kl` is estimated from them.
    """

    schema_version: Literal["hint-v1"] = "hint-v1"
    trajectory_id: str
    step: Annotated[int, Field(ge=1)]
    span: Annotated[tuple[int, int], Strict(False)]
    source: HintSource
    type: str
    text: str
    hint_ids: list[TokenId]
    gates: HintGates
    used: bool
    kl: Annotated[float, Field(ge=0)] | None = None
    evidence: str = ""
    author: HintAuthor = "message"
    noticed: Annotated[int, Field(ge=1)] | None = None
    refused: str = ""
    student_logprobs: list[LogProb] | None = None
    teacher_logprobs: list[LogProb] | None = None
    versions: HintVersions

    @model_validator(mode="after")
    def _points_at_something(self) -> Self:
        start, end = self.span
        if not 0 <= start < end:
            raise_faults([(("span",), "a start and a larger end, counted from 0")])
        if not self.text.strip() or len(self.text.splitlines()) > 1:
            raise_faults([(("text",), "one line of text")])
        return self
