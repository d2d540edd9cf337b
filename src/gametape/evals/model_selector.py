"""`ModelSelector`: one model for all items, or a scripted policy that differs by item and attempt."""

from pathlib import Path
from typing import Self

from gametape.engines.conversation import Model
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_names import resolve_model
from gametape.evals.suite import SuiteItem

_SCRIPTED = "scripted:"


class ModelSelector:
    """Gives the model for an attempt. Close it after use."""

    def __init__(
        self, name: str, home: Path, scripted_names: frozenset[str], perimeter: EgressPolicy | None = None
    ) -> None:
        """`scripted_names` are the scripted policies that every item has."""
        self.name = name
        self._home, self._perimeter = home, perimeter
        self._knows_items = name.startswith(_SCRIPTED) and name.removeprefix(_SCRIPTED) in scripted_names
        self._model = (
            None if self._knows_items else resolve_model(name, home, perimeter, dict.fromkeys(scripted_names, list))
        )

    @classmethod
    def for_items(cls, name: str, home: Path, items: list[SuiteItem], perimeter: EgressPolicy | None = None) -> Self:
        return cls(name, home, frozenset.intersection(*(frozenset(item.scripts) for item in items)), perimeter)

    def model_for(self, item: SuiteItem, number: int) -> Model:
        if self._model is not None:
            return item.adapt_model(self._model)
        turns = {name: (lambda script=script: script(number)) for name, script in item.scripts.items()}
        return item.adapt_model(resolve_model(self.name, self._home, self._perimeter, turns))

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()
