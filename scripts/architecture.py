"""Write the table of rooms in ARCHITECTURE.md from the imports that are really there.

    python scripts/architecture.py [--check]

A room is a package or module directly below `gametape`; its sentence is the first line of its docstring. `--check`
writes nothing and exits 1 if the table is not what the imports say.
"""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gametape"
DOCUMENT = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- rooms: begin (written by scripts/architecture.py) -->", "<!-- rooms: end -->"


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("gametape", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, path: Path) -> Iterator[str]:
    """The dotted names a module imports from the package, wherever in its text; relative ones made absolute."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "gametape")
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            if base.split(".")[0] == "gametape":
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@functools.cache
def rooms() -> dict[str, set[str]]:
    """By room: the other rooms it imports."""
    known = modules()
    table: dict[str, set[str]] = {room_of(name): set() for name in known if room_of(name)}
    for name, path in known.items():
        if room := room_of(name):
            imported = {room_of(target) for target in imports_of(name, path)}
            table[room] |= (imported & set(table)) - {room}
    return table


def ordered(table: dict[str, set[str]]) -> list[str]:
    """Rooms with the highest first: each stands above all that it imports."""
    order: list[str] = []
    while left := sorted(set(table) - set(order)):
        free = [room for room in left if table[room] <= set(order)]
        order += free or left
    return order[::-1]


def sentence_of(room: str) -> str:
    path = PACKAGE / room / "__init__.py" if (PACKAGE / room).is_dir() else PACKAGE / f"{room}.py"
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0].rstrip(".")


def table_text() -> str:
    table = rooms()
    rows = ["| room | what it is | imports |", "|---|---|---|"]
    order = ordered(table)
    for room in order:
        below = [other for other in order if other in table[room]]
        imported = (
            "everything below" if below == order[order.index(room) + 1 :] and len(below) > 3 else ", ".join(below)
        )
        rows.append(f"| `{room}` | {sentence_of(room)} | {imported or 'nothing'} |")
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n{table_text()}\n{END}{after}"
    if "--check" in arguments:
        return 0 if wanted == text else 1
    DOCUMENT.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
