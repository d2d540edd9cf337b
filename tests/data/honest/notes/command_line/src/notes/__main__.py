"""python -m notes FILE add|find|tags ..."""

import argparse
import sys
from pathlib import Path

from notes.notebook import Notebook
from notes.store import Store


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="notes")
    parser.add_argument("file", type=Path)
    parser.add_argument("verb", choices=["add", "find", "tags"])
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(argv)
    notebook = Notebook(Store(options.file))
    if options.verb == "add":
        print(notebook.add(" ".join(options.words)).id)
    elif options.verb == "find":
        for note in notebook.find(" ".join(options.words)):
            print(f"{note.id:>4}  {note.title}")
    else:
        for tag, count in sorted(notebook.tags().items()):
            print(f"{count:>4}  {tag}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
