"""Who plays: one model for all items, or a written policy that is another one for each item and attempt."""

from pathlib import Path
from typing import Self

from gametape.engines.conversation import Model
from gametape.engines.naming import resolve
from gametape.engines.perimeter import Perimeter
from gametape.evals.suites import Item

_SCRIPTED = "scripted:"


class Cast:
    """Finds the model for an attempt. To be closed."""

    def __init__(self, name: str, home: Path, known: frozenset[str], perimeter: Perimeter | None = None) -> None:
        """`known` are the names of written policies that the items have."""
        self.name = name
        self._home, self._perimeter = home, perimeter
        self._knows_items = name.startswith(_SCRIPTED) and name.removeprefix(_SCRIPTED) in known
        self._model = None if self._knows_items else resolve(name, home, perimeter, dict.fromkeys(known, list))

    @classmethod
    def for_items(cls, name: str, home: Path, items: list[Item], perimeter: Perimeter | None = None) -> Self:
        return cls(name, home, frozenset.intersection(*(frozenset(item.scripts) for item in items)), perimeter)

    def model(self, item: Item, number: int) -> Model:
        if self._model is not None:
            return item.spoken(self._model)
        turns = {name: (lambda made=made: made(number)) for name, made in item.scripts.items()}
        return item.spoken(resolve(self.name, self._home, self._perimeter, turns))

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()
