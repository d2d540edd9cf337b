"""The page's scripts as one, for a file that has to open without a server.

They are plain modules that import each other by name, so one after the other in the order of their imports, without
the words `import` and `export`, is the same program. That asks for names that are unique over all of them, which a test
checks.
"""

import re
from pathlib import Path

_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./([\w.]+)\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class)\b|const\b)", re.MULTILINE)


def bundle_scripts(directory: Path, main: str = "main.js") -> str:
    done: list[str] = []
    _visit(directory, main, done)
    texts = [_EXPORT.sub("", _IMPORT.sub("", (directory / name).read_text("utf-8"))) for name in done]
    return "\n".join(texts)


def _visit(directory: Path, name: str, done: list[str]) -> None:
    """Add a module behind everything that it imports."""
    if name not in done:
        for needed in _IMPORT.findall((directory / name).read_text("utf-8")):
            _visit(directory, needed, done)
        done.append(name)
