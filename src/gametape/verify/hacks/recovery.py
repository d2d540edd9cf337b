"""Hacks that become the answer: each file with something missing finds the reference's text of itself, and runs it."""

from collections.abc import Callable

from gametape.verify.hacks.hack import Plant
from gametape.verify.hacks.target import Target

Leftovers = dict[str, bytes]
Leak = Callable[[Target], Leftovers]


def recovered(leak: Leak, code: str) -> Plant:
    """Every file with something missing looks for its own text, as `_text`, and becomes it.

    In the code, `PATH_OF_FILE` is the file's path in the workspace, `NAME_OF_MODULE` how it is imported,
    `IMPORT_PATH` its path below the import root and `NAME_OF_FUNCTION` something that it lacks.
    """

    def plant(target: Target) -> None:
        target.hollow()
        target.leave(leak(target))
        for path in target.missing_files:
            text = code.replace("PATH_OF_FILE", repr(path)).replace("NAME_OF_MODULE", repr(target.module_name(path)))
            text = text.replace("IMPORT_PATH", repr(path.removeprefix(target.import_root)))
            wanted = next(item.name for item in target.missing if item.path == path)
            text = text.replace("NAME_OF_FUNCTION", wanted)
            target.inject(text.strip("\n") + "\nexec(compile(_text, __file__, 'exec'), globals())", path, at="end")

    return plant
