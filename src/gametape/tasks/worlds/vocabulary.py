"""Every word that a world can say or be told: the whole vocabulary of a tiny policy."""

import re

from gametape.tasks.worlds.families import FAMILIES, VALUES
from gametape.tasks.worlds.rules import DEMANDS, MARKINGS, rule_text
from gametape.tasks.worlds.tools import signatures

_SAID = (
    "first next ok done , : error at which is not plain rule no job left such name tool value mode in it end too many "
    "words code of keep the"
)


def words() -> list[str]:
    """In an order that depends on the worlds alone."""
    texts = [_SAID, rule_text("", "", ""), *DEMANDS, *MARKINGS, *VALUES, *signatures()]
    for family in FAMILIES.values():
        texts += [*family.kinds, *family.items, family.put_text, family.drop_text]
    found = (re.sub(r"\{\w+\}", "", text).split() for text in texts)
    return list(dict.fromkeys(word for text in found for word in text))
