"""A model with a usual temperature of its own, which holds wherever a conversation is not given one."""

from dataclasses import dataclass, fields

from gametape.core.messages import Sampling
from gametape.engines.conversation import Conversation, Model
from gametape.engines.token_conversation import TokenConversation, TokenModel


def with_temperature(model: Model, temperature: float) -> Model:
    """The same model; one that takes token ids still does."""
    if isinstance(model, TokenModel):
        return TemperedTokenModel(
            **{field.name: getattr(model, field.name) for field in fields(model)}, temperature=temperature
        )
    return TemperedModel(model, temperature)


def _tempered(sampling: Sampling, temperature: float) -> Sampling:
    given = "temperature" in sampling.model_fields_set
    return sampling if given else sampling.model_copy(update={"temperature": temperature})


@dataclass(frozen=True)
class TemperedTokenModel(TokenModel):
    """A `TokenModel` with a usual temperature."""

    temperature: float = 1.0

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> TokenConversation:
        return super().start_conversation(_tempered(sampling, self.temperature), conversation_id, constrain)


class TemperedModel:
    """Any other model with a usual temperature."""

    def __init__(self, inner: Model, temperature: float) -> None:
        self.inner, self.temperature = inner, temperature
        self.name, self.local, self.trainable = inner.name, inner.local, inner.trainable

    @property
    def window(self) -> int:
        return self.inner.window

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> Conversation:
        return self.inner.start_conversation(_tempered(sampling, self.temperature), conversation_id, constrain)

    async def close(self) -> None:
        await self.inner.close()
