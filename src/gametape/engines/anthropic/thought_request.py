"""How a model is asked to think, and what its server refuses of that.

Newer models are told an effort and decide themselves (`adaptive`); older ones are given a budget of tokens (`enabled`).
A name does not tell for certain which one a server takes, so the other form is tried when it refuses.
"""

import re
from typing import Any

from gametape.engines.errors import EngineError
from gametape.engines.providers import ReasoningEffort, reasoning_effort
from gametape.engines.server.refusals import RefusedParameters

THINKING_BLOCKS = ("thinking", "redacted_thinking")
_BUDGETS: dict[str, int] = {"low": 2048, "medium": 8192, "high": 24_576}
_LEAST_BUDGET = 1024
_WITH_BUDGET = re.compile(r"claude-(2|3|instant|[a-z]+-4(-[0-5](?!\d)|-20\d{6}|$))")
_SAMPLING = ("temperature", "top_p", "top_k")


class RefusedThinking(RefusedParameters):
    """Adds the request to think, in the form that the server takes, to what is known of its refusals."""

    renames_bound = False
    streams_always = True

    def __init__(self, model: str, reasoning: int | ReasoningEffort | None) -> None:
        super().__init__()
        self._reasoning = reasoning
        self._adaptive = _WITH_BUDGET.match(model) is None
        self._display = True
        self._switched = False
        self._keeps_blocks = True

    def shape(self, body: dict[str, Any]) -> dict[str, Any]:
        thinking = self._thinking(min(int(body["max_tokens"]), self._bound or int(body["max_tokens"])))
        if thinking and "thinking" not in self._dropped:
            body = {name: value for name, value in body.items() if name not in (*_SAMPLING, "tool_choice")} | thinking
        shaped = super().shape(body)
        if not self._keeps_blocks:
            shaped["messages"] = [without_thinking(message) for message in shaped["messages"]]
        return shaped

    def _thinking(self, max_tokens: int) -> dict[str, Any]:
        if self._reasoning is None:
            return {}
        if self._adaptive:
            shown = {"display": "summarized"} if self._display else {}
            effort = {"effort": reasoning_effort(self._reasoning)}
            return {"thinking": {"type": "adaptive", **shown}, "output_config": effort}
        wanted = self._reasoning if isinstance(self._reasoning, int) else _BUDGETS[self._reasoning]
        budget = min(wanted, max_tokens - max(_LEAST_BUDGET, max_tokens // 4))
        return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _LEAST_BUDGET else {}

    def _learn_option(self, said: str, blamed: set[str], body: dict[str, Any]) -> bool:
        if self._keeps_blocks and "signature" in said and "thinking" in said:
            self._keeps_blocks = False
            self.changes["blocks"] = "thinking of earlier turns is not sent: the server refuses its signature"
            return True
        if "thinking" in body and self._display and "display" in said:
            self._display = False
            return True
        if "thinking" in body and not self._switched and re.search(r"adaptive|budget_tokens|thinking\.type", said):
            self._switched, self._adaptive = True, not self._adaptive
            form = "effort" if self._adaptive else "budget"
            self.changes["form"] = f"the model is asked to think by {form}: the server refuses the other form"
            return True
        return super()._learn_option(said, blamed, body)

    def learn(self, error: EngineError, body: dict[str, Any]) -> bool:
        learnt = super().learn(error, body)
        if learnt and "thinking" in self._dropped:
            self._dropped.add("output_config")
        return learnt


def without_thinking(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] != "assistant":
        return message
    kept = [block for block in message["content"] if block["type"] not in THINKING_BLOCKS]
    return message | {"content": kept or [{"type": "text", "text": "(no answer)"}]}
