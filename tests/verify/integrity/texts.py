"""Product code in `tests/data/integrity`, separated by lines of dashes: oddly but legally written code, for which
nobody may be flagged, and hostile code by family, which must be seen, and by a rule of its family."""

from pathlib import Path

_PLACE = Path(__file__).parents[2] / "data/integrity"


def _texts(path: Path) -> list[str]:
    return path.read_text().strip("\n").split("\n----\n")


HONEST = _texts(_PLACE / "honest.txt")
HOSTILE = [(path.stem, text) for path in sorted(_PLACE.glob("hostile/*.txt")) for text in _texts(path)]
