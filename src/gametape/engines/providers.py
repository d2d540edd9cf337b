"""The providers of models: which protocol each speaks, where it is, and the variable that holds its key.

A user may add providers and settings of single models (`ProviderTable`). What is added can never receive a built-in
provider's key: neither the name nor the key variable of a built-in provider can be taken.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from gametape.core.errors import BadInput
from gametape.engines.prices import Price

ServerProtocol = Literal["openai", "anthropic", "ollama"]
SERVER_PROTOCOLS: tuple[ServerProtocol, ...] = ("openai", "anthropic", "ollama")
ReasoningEffort = Literal["low", "medium", "high"]
REASONING_EFFORTS: tuple[ReasoningEffort, ...] = ("low", "medium", "high")

HOSTED_WINDOW = 128_000
"""The context length that is assumed for a model of a hosted provider, where nothing is known about it."""
LOCAL_WINDOW = 32_768
"""The same for a model of any other server."""
SERVER_KEY_VARIABLE = "GAMETAPE_API_KEY"
"""Holds the key for a server that is named by its URL."""
URL_IN_NAME = re.compile(r"@(?=[A-Za-z][A-Za-z0-9+.-]*://|unix:)")
"""Where the URL begins in `MODEL@URL`; a model's own name may have an @ too."""
_OTHER_NAMES = frozenset({"scripted", "unix", "http", "https"})


@dataclass(frozen=True)
class Provider:
    """Who serves models. Its key goes to the origin of `url` only; a hosted one answers nobody without a key.

    `takes_tokens`: a server of this kind may take token ids, which is found out by a few requests.
    """

    name: str
    protocol: ServerProtocol
    url: str
    key_variable: str | None = None
    hosted: bool = False
    takes_tokens: bool = False
    window: int = LOCAL_WINDOW


@dataclass(frozen=True)
class ModelSettings:
    """What a user says about one model. `key_variable` is for the server that the model's full name stands for.

    `reasoning` asks the model to reason: a number of tokens, or an effort.
    """

    window: int | None = None
    price: Price | None = None
    key_variable: str | None = None
    reasoning: int | ReasoningEffort | None = None


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        provider.name: provider
        for provider in (
            Provider("openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY", True, False, HOSTED_WINDOW),
            Provider(
                "anthropic", "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", True, False, 200_000
            ),
            Provider(
                "openrouter",
                "openai",
                "https://openrouter.ai/api/v1",
                "OPENROUTER_API_KEY",
                True,
                False,
                HOSTED_WINDOW,
            ),
            Provider("ollama", "ollama", "http://127.0.0.1:11434", "OLLAMA_API_KEY"),
            Provider("lmstudio", "openai", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY"),
            Provider("vllm", "openai", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", takes_tokens=True),
        )
    }
)
_OWN_VARIABLES = {provider.key_variable: provider.name for provider in PROVIDERS.values()}


@dataclass(frozen=True)
class ProviderTable:
    """The built-in providers and `added` ones, and `settings` by a model's full name (`PROVIDER:MODEL[@URL]`)."""

    added: Mapping[str, Provider] = field(default_factory=dict)
    settings: Mapping[str, ModelSettings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, provider in self.added.items():
            if name in PROVIDERS or name in _OTHER_NAMES:
                raise BadInput(f"provider {name!r}: that name is taken; choose another")
            if not name.isidentifier() or not name.isascii():
                raise BadInput(f"provider {name!r}: a provider's name is letters, digits and underscores")
            if provider.protocol not in SERVER_PROTOCOLS:
                known = ", ".join(SERVER_PROTOCOLS)
                raise BadInput(f"provider {name!r}: no protocol {provider.protocol!r}; choose one of {known}")
            refuse_built_in_key(provider.key_variable, f"provider {name!r}")

    def find(self, name: str) -> Provider | None:
        return PROVIDERS.get(name) or self.added.get(name)

    def is_server_name(self, name: str) -> bool:
        """Whether this name means a server's model rather than weights or a script."""
        kind, colon, _ = name.partition(":")
        return bool(colon and self.find(kind)) or (kind != "scripted" and URL_IN_NAME.search(name) is not None)

    @property
    def names(self) -> list[str]:
        return [*PROVIDERS, *self.added]


def refuse_built_in_key(variable: str | None, where: str) -> None:
    """Raise `BadInput` if this variable is the key of a built-in provider, which goes to that provider only."""
    if variable is not None and variable in _OWN_VARIABLES:
        raise BadInput(f"{where}: ${variable} is the key of {_OWN_VARIABLES[variable]} and is sent there only")


def reasoning_effort(reasoning: int | ReasoningEffort) -> ReasoningEffort:
    """The effort that a number of tokens to reason with comes to, for servers that take no number."""
    if not isinstance(reasoning, int):
        return reasoning
    return "low" if reasoning < 4096 else "medium" if reasoning < 16_384 else "high"
