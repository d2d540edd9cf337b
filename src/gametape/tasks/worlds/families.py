"""The three families of worlds: the names of items and jobs in each, and the tools that do the jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Verb = Literal["put", "drop", "keep"]
"""`keep` is to write a note, in the memory family."""
ITEM_COUNT = 24
"""How many items a world has."""


@dataclass(frozen=True)
class WorldFamily:
    """`put_tool` and `drop_tool` are the convention: how a job is done at an item without a marking."""

    name: str
    kinds: tuple[str, str, str]
    letter: str
    put_tool: str
    drop_tool: str
    put_text: str
    drop_text: str

    @property
    def items(self) -> list[str]:
        return [f"{self.letter}{number}" for number in range(1, ITEM_COUNT + 1)]

    def job_text(self, verb: Verb, value: str, kind: str, item: str) -> str:
        return (self.put_text if verb == "put" else self.drop_text).format(value=value, thing=f"{kind} {item}")


FAMILIES: Mapping[str, WorldFamily] = {
    family.name: family
    for family in (
        WorldFamily(
            name="files",
            kinds=("file", "folder", "link"),
            letter="f",
            put_tool="write",
            drop_tool="delete",
            put_text="put {value} into {thing}",
            drop_text="drop {value} from {thing}",
        ),
        WorldFamily(
            name="database",
            kinds=("row", "table", "view"),
            letter="r",
            put_tool="insert",
            drop_tool="erase",
            put_text="store {value} in {thing}",
            drop_text="clear {value} in {thing}",
        ),
        WorldFamily(
            name="build",
            kinds=("target", "module", "image"),
            letter="t",
            put_tool="make",
            drop_tool="strip",
            put_text="build {thing} with {value}",
            drop_text="build {thing} without {value}",
        ),
    )
}

# fmt: off
VALUES = (
    "red", "blue", "green", "gold", "pink", "gray", "black", "white", "brown", "orange",
    "purple", "silver", "salt", "iron", "wood", "clay", "sand", "glass", "stone", "paper",
)
# fmt: on
"""What is put into items."""


def context_index(kind: str) -> int:
    """The index of a kind in its family plus the index of its family: neighbours differ by one."""
    for number, family in enumerate(FAMILIES.values()):
        if kind in family.kinds:
            return number + family.kinds.index(kind)
    raise KeyError(kind)
