"""Scripted policies: they answer the n-th request of a conversation with their n-th turn.

Their turns go through token ids and the parser like those of a model, so what they show holds for models. Their ids are
bytes, and every log-probability is 0. Four bytes count as one token, which is about what tokenizers make of English
text and code: budgets, windows and usage mean for a script what they mean for a model.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest, Generation, TokenUsage, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.core.validation import problems_from
from gametape.engines.chat_formats.byte_format import END, byte_chat_format
from gametape.engines.chat_formats.fenced import write_fenced_call
from gametape.engines.token_conversation import TokenModel

WINDOW = 1 << 18
BYTES_PER_TOKEN = 4


class ScriptedCall(StrictModel):
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class ScriptedTurn(StrictModel):
    """One line of a script file."""

    text: str = ""
    tool_calls: list[ScriptedCall] = Field(default_factory=list)

    def to_text(self) -> str:
        """The turn as a model would have written it."""
        calls = (write_fenced_call(call.name, call.arguments) for call in self.tool_calls)
        return "\n".join(filter(None, [self.text, *calls]))


_AFTER_LAST = ScriptedTurn(
    text="The script has ended.",
    tool_calls=[ScriptedCall(name="finish", arguments={"summary": "the script has ended", "confidence": 0.5})],
)
"""The answer to every request after the last turn."""


@dataclass
class ScriptedEngine(PolicyEngine):
    """A `PolicyEngine` whose ids are bytes, which its usage counts. Of the prompt it knows only how many turns came
    before."""

    turns: Sequence[ScriptedTurn]
    version: int = field(default=0, init=False)

    async def generate(self, request: GenerateRequest) -> Generation:
        turn = self.turns[request.turn] if request.turn < len(self.turns) else _AFTER_LAST
        ids = [*turn.to_text().encode("utf-8", "replace"), END][: request.max_tokens]
        return Generation(
            request_id=request.request_id,
            completion_ids=ids,
            logprobs=[0.0] * len(ids),
            policy_versions=[self.version] * len(ids),
            finish="stop" if ids[-1] == END else "length",
            usage=TokenUsage(prompt_tokens=len(request.prompt_ids), completion_tokens=len(ids)),
        )

    async def update_weights(self, update: WeightUpdate) -> None:
        self.version = update.policy_version

    async def policy_version(self) -> int:
        return self.version

    def weights_changed(self, version: int) -> None:
        """Only the number that tokens are marked with changes; a script has no weights."""
        self.version = version


def scripted_model(name: str, turns: Sequence[ScriptedTurn], window: int = WINDOW) -> TokenModel:
    return TokenModel(
        name=name,
        engine=ScriptedEngine(turns),
        chat_format=byte_chat_format(),
        window=window,
        ids_per_token=BYTES_PER_TOKEN,
    )


def read_script(path: Path) -> list[ScriptedTurn]:
    """Read a script file: JSON lines, one turn each. Empty lines are skipped."""
    try:
        lines = path.read_bytes().decode().split("\n")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8: byte {error.start}") from error
    turns = [_turn(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not turns:
        raise BadInput(f"{path}: no turns in it; expected JSON lines with text and tool_calls")
    return turns


def _turn(path: Path, number: int, line: str) -> ScriptedTurn:
    try:
        document = json.loads(line)
        return ScriptedTurn.model_validate(document)
    except ValidationError as error:
        raise BadInput(f"{path}, line {number}: {problems_from(error, document)[0]}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}, line {number}: not JSON: {error}") from error
