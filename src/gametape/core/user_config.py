"""The configuration of a person and of a workspace: the default model, budgets, aliases of models, providers.

A workspace's file comes with its files, perhaps from a stranger: it has no aliases and no providers.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gametape.core.base_model import StrictModel

Tokens = Annotated[int, Field(ge=1, lt=2**40)]
Dollars = Annotated[float, Field(gt=0, le=1e9)]
DollarsPerMillion = Annotated[float, Field(ge=0, le=1e9)]
Reasoning = Literal["low", "medium", "high"] | Annotated[int, Field(ge=1, lt=10**9)]
"""An effort, or a number of tokens."""


def _is_one_line(text: str) -> str:
    if not text.strip() or len(text) > 1000 or not text.isprintable():
        raise ValueError("one line of text")
    return text.strip()


def _is_variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", text):
        raise ValueError("the name of an environment variable (never a key itself)")
    return text


OneLine = Annotated[str, AfterValidator(_is_one_line)]
AliasName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
ProviderName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]


class BudgetConfig(StrictModel):
    """What one attempt, goal or thread may use. Each is the default of the option `--max-...` of the same name."""

    turns: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    turn_tokens: Tokens | None = None
    tokens: Tokens | None = None
    cost: Dollars | None = None
    seconds: Annotated[float, Field(ge=0.1, le=1e9)] | None = None


class PriceConfig(StrictModel):
    """Dollars per million tokens; `cached` is as `input` where it is missing."""

    input: DollarsPerMillion
    output: DollarsPerMillion
    cached: DollarsPerMillion | None = None


class ModelAlias(StrictModel):
    """A name of one's own for a model, with what its server does not tell."""

    model: OneLine
    window: Tokens | None = None
    price: PriceConfig | None = None
    reasoning: Reasoning | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None


class ProviderConfig(StrictModel):
    """A server of one's own, named `NAME:MODEL`. The key is in the environment, in `key_variable`."""

    url: OneLine
    protocol: Literal["openai", "anthropic", "ollama"] = "openai"
    key_variable: Annotated[str, AfterValidator(_is_variable)] | None = None
    window: Tokens | None = None


class WorkspaceConfig(StrictModel):
    """The file of a workspace."""

    model: OneLine | None = None
    budgets: BudgetConfig = BudgetConfig()


class UserConfig(WorkspaceConfig):
    """The file of a person."""

    local_only: bool = False
    """Refuse every model that is not on this machine."""
    models: dict[AliasName, ModelAlias] = Field(default_factory=dict)
    providers: dict[ProviderName, ProviderConfig] = Field(default_factory=dict)
