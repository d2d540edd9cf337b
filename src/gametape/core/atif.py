"""The parts of an ATIF step, named as in the Agent Trajectory Interchange Format."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Tag, model_validator

from gametape.core.base_model import Count, ExtensibleModel, LogProb, Number, TokenId
from gametape.core.token_prefix import PromptIds
from gametape.core.validation import raise_faults

Extra = dict[str, Any]


class MediaSource(ExtensibleModel):
    """An image or a recording in a file, or at an address."""

    media_type: str
    path: str
    duration_sec: Number | None = None
    """Of a recording; known since ATIF 1.8."""


class ContentPart(ExtensibleModel):
    """A part of a message: text, an image, or since ATIF 1.8 a recording."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: MediaSource | None = None

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        if self.type == "text" and (self.text is None or self.source is not None):
            raise_faults([(("text",), "a string, and no source, in a part of type text")])
        if self.type != "text":
            if self.source is None or self.text is not None:
                raise_faults([(("source",), f"a source, and no text, in a part of type {self.type}")])
            elif not self.source.media_type.strip().lower().startswith(f"{self.type}/"):
                raise_faults([(("source", "media_type"), f"{self.type}/..., as the type of the part says")])
        return self


def _kind_of_content(value: Any) -> str | None:
    return "text" if isinstance(value, str) else "parts" if isinstance(value, list) else None


Content = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[ContentPart], Tag("parts")],
    Discriminator(
        _kind_of_content,
        custom_error_type="content",
        custom_error_message="Input should be a string or a list of content parts",
    ),
]


class Agent(ExtensibleModel):
    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: Extra | None = None


class ToolCall(ExtensibleModel):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: Extra | None = None


class SubagentRef(ExtensibleModel):
    """Refers to a subagent's trajectory: embedded (by id) or in another file (by path)."""

    trajectory_id: str | None = None
    trajectory_path: str | None = None
    session_id: str | None = None
    extra: Extra | None = None


class ObservationResult(ExtensibleModel):
    source_call_id: str | None = None
    content: Content | None = None
    subagent_trajectory_ref: list[SubagentRef] | None = None
    extra: Extra | None = None


class Observation(ExtensibleModel):
    results: list[ObservationResult]


class Metrics(ExtensibleModel):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    cost_usd: Number | None = None
    prompt_token_ids: PromptIds | None = None
    completion_token_ids: list[TokenId] | None = None
    logprobs: list[LogProb] | None = None
    extra: Extra | None = None


class FinalMetrics(ExtensibleModel):
    total_prompt_tokens: Count | None = None
    total_completion_tokens: Count | None = None
    total_cached_tokens: Count | None = None
    total_cost_usd: Number | None = None
    total_steps: Count | None = None
    extra: Extra | None = None
