"""One step of a trajectory. A step of the agent is a whole turn."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainValidator, model_validator

from gametape.core.atif import Content, Metrics, Observation, SubagentRef, ToolCall
from gametape.core.base_model import Count, ExtensibleModel, validate_number
from gametape.core.tokens import ContextTokens, StepExtra, TurnExtra, TurnTokens, length_faults
from gametape.core.validation import Fault, Location, raise_faults


def _effort(value: Any) -> str | float:
    if isinstance(value, str):
        return value
    return validate_number(value)


Effort = Annotated[str | int | float, PlainValidator(_effort)]


class Step(ExtensibleModel):
    """One step. A step of the agent is a turn: its message, its tool calls, and their results."""

    step_id: Annotated[int, Field(ge=1)]
    timestamp: str | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    reasoning_effort: Effort | None = None
    message: Content
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    llm_call_count: Count | None = None
    is_copied_context: bool | None = None
    extra: StepExtra | None = None

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        faults = [*self._faults()]
        if faults:
            raise_faults(faults)
        return self

    def _faults(self) -> Iterator[Fault]:
        if self.timestamp is not None and not _is_iso_8601(self.timestamp):
            yield ("timestamp",), "an ISO 8601 date and time"
        if self.source != "agent":
            for field in ("reasoning_effort", "reasoning_content", "tool_calls", "metrics"):
                if getattr(self, field) is not None:
                    yield (field,), "nothing: only steps of the agent have it"
        if self.llm_call_count == 0:
            for field in ("reasoning_content", "metrics"):
                if getattr(self, field) is not None:
                    yield (field,), "nothing: no model was called (llm_call_count is 0)"
        calls = {call.tool_call_id for call in self.tool_calls or []}
        for index, result in enumerate(self.observation.results if self.observation else []):
            if result.source_call_id is not None and result.source_call_id not in calls:
                yield (
                    ("observation", "results", index, "source_call_id"),
                    "the id of a tool call of this step",
                )
        yield from self._token_faults()

    def _token_faults(self) -> Iterator[Fault]:
        metrics = self.metrics or Metrics()
        sampled = metrics.completion_token_ids
        columns: dict[Location, list[int] | list[float] | None] = {
            ("extra", "gametape", "loss_mask"): self.gametape_extra.loss_mask,
            ("extra", "gametape", "policy_versions"): self.gametape_extra.policy_versions,
        }
        if sampled is not None:
            yield from length_faults(len(sampled), columns | {("metrics", "logprobs"): metrics.logprobs})
        else:
            given = (location for location, column in columns.items() if column is not None)
            yield from ((location, "metrics.completion_token_ids beside it") for location in given)

    @property
    def gametape_extra(self) -> TurnExtra:
        """Gametape's own fields of this step, `extra.gametape`; empty where there are none."""
        return (self.extra and self.extra.gametape) or TurnExtra()

    def tokens(self) -> TurnTokens | None:
        """This turn's tokens, or None where prompt and completion ids were not both recorded."""
        metrics, extra = self.metrics, self.gametape_extra
        if metrics is None or metrics.prompt_token_ids is None or metrics.completion_token_ids is None:
            return None
        return TurnTokens(
            prompt_ids=metrics.prompt_token_ids,
            completion_ids=metrics.completion_token_ids,
            logprobs=metrics.logprobs,
            loss_mask=extra.loss_mask,
            policy_versions=extra.policy_versions,
        )

    def with_tokens(self, tokens: TurnTokens) -> Self:
        """This step with tokens. They were validated when they were sampled, and are not validated again."""
        metrics = {
            "prompt_token_ids": tokens.prompt_ids,
            "completion_token_ids": tokens.completion_ids,
            "logprobs": tokens.logprobs,
        }
        columns = _given({"loss_mask": tokens.loss_mask, "policy_versions": tokens.policy_versions})
        update: dict[str, Any] = {"metrics": (self.metrics or Metrics()).model_copy(update=_given(metrics))}
        if columns:
            extra = self.extra or StepExtra()
            update["extra"] = extra.model_copy(update={"gametape": self.gametape_extra.model_copy(update=columns)})
        return self.model_copy(update=update)

    def context_tokens(self) -> ContextTokens:
        """What this step shows of its context, for `is_append_only`."""
        metrics = self.metrics or Metrics()
        return ContextTokens(
            prompt_ids=metrics.prompt_token_ids,
            completion_ids=metrics.completion_token_ids,
            fresh=bool(self.gametape_extra.compacted),
        )

    def subagent_refs(self) -> Iterator[tuple[Location, SubagentRef]]:
        """The subagents that this step refers to, each with its location in the step."""
        for r, result in enumerate(self.observation.results if self.observation else []):
            for k, ref in enumerate(result.subagent_trajectory_ref or []):
                yield ("observation", "results", r, "subagent_trajectory_ref", k), ref


def _given(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if column is not None}


def _is_iso_8601(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
