"""Workspace paths as the model writes them: normalized, listed, and with help in errors."""

import difflib
import errno
import posixpath

from gametape.agent.text_file import sanitize_text
from gametape.agent.tools.tool import run_program
from gametape.core.errors import BadInput
from gametape.core.protocols import Workspace
from gametape.sandbox.policy import WORKSPACE

MAX_LISTED = 200
_MOST_NAMES = 20_000
_SECONDS = 20.0


def normalize_path(path: str) -> str:
    """A path of the workspace, relative to it and without `.` and `..`; the workspace itself is `.`."""
    if "\0" in path or "\n" in path:
        raise BadInput("a path holds no NUL byte and no line break")
    whole = posixpath.normpath(posixpath.join(WORKSPACE, path.strip() or "."))
    if whole != WORKSPACE and not whole.startswith(WORKSPACE + "/"):
        raise BadInput(f"{sanitize_text(path)[:200]} is outside of the workspace; give a path relative to {WORKSPACE}")
    return posixpath.relpath(whole, WORKSPACE)


def as_argument(path: str) -> str:
    """A relative path as an argument that no program takes for an option."""
    return path if path == "." else f"./{path}"


def is_missing(error: BadInput) -> bool:
    return _errno(error) == errno.ENOENT


def is_directory(error: BadInput) -> bool:
    """Whether the error is the refusal to read a directory."""
    return _errno(error) == errno.EISDIR or (error.__cause__ is None and "not a regular file" in str(error))


def explain_error(error: BadInput, path: str) -> BadInput:
    """The same error in words that say what to do."""
    code = _errno(error)
    if code == errno.ELOOP:
        return BadInput(f"{path} is a symbolic link, and links are not followed here; name the file it points to")
    if code == errno.ENOTDIR:
        return BadInput(f"{path}: something on the way is a file or a symbolic link, not a directory")
    if code is None and "not a regular file" in str(error):
        return BadInput(f"{path} is no regular file; look at it with the shell")
    return error


async def list_directory(workspace: Workspace, path: str) -> str:
    """The entries of a directory, directories with a slash, each file with its size."""
    argv = ["/usr/bin/find", as_argument(path), "-maxdepth", "1", "-printf", r"%d\t%y\t%s\t%f\n"]
    result = await run_program(workspace, argv, _SECONDS)
    rows = [row for line in result.stdout.splitlines() if len(row := line.split("\t", 3)) == 4]
    if not any(row[:2] == ["0", "d"] for row in rows):
        reason = result.stderr.strip() or "it is neither a file nor a directory; look at it with the shell"
        raise BadInput(f"{path} cannot be read: {reason[:200]}")
    entries = sorted((name, kind, size) for depth, kind, size, name in rows if depth == "1")
    lines = [_entry(*entry) for entry in entries[:MAX_LISTED]]
    more = [f"... and {len(entries) - MAX_LISTED:,} more"] if len(entries) > MAX_LISTED else []
    return "\n".join([f"{path}/ is a directory with {len(entries):,} entries:", *lines, *more])


async def list_files(workspace: Workspace, endings: tuple[str, ...] = ()) -> list[str]:
    """The paths of the workspace's regular files, without those of version control and caches."""
    pruned = ["(", "-name", ".git", "-o", "-name", "__pycache__", "-o", "-name", "node_modules", "-o", "-name", ".venv"]
    argv = ["/usr/bin/find", ".", "-type", "d", *pruned, ")", "-prune", "-o", "-type", "f"]
    for number, ending in enumerate(endings):
        argv += ["(" if number == 0 else "-o", "-name", f"*{ending}"]
    argv += [")"] if endings else []
    result = await run_program(workspace, [*argv, "-printf", r"%P\n"], _SECONDS)
    return sorted(line for line in result.stdout.split("\n")[:_MOST_NAMES] if line)


async def similar_names(workspace: Workspace, path: str) -> str:
    """Names that are similar to the missing one, as the end of a sentence."""
    names = await list_files(workspace)
    base = posixpath.basename(path)
    same = [name for name in names if posixpath.basename(name) == base]
    close = difflib.get_close_matches(path, names, n=3, cutoff=0.7)
    bases = difflib.get_close_matches(base, sorted({posixpath.basename(name) for name in names}), n=3, cutoff=0.75)
    alike = [name for name in names if posixpath.basename(name) in bases]
    similar = list(dict.fromkeys((*same, *close, *alike)))[:5]
    return f"; there is {', '.join(similar)}" if similar else ""


def _entry(name: str, kind: str, size: str) -> str:
    if kind == "d":
        return f"  {name}/"
    return f"  {name}  ({int(size):,} bytes)" if kind == "f" and size.isdigit() else f"  {name}  ({_KINDS.get(kind)})"


_KINDS = {"l": "symbolic link", "p": "pipe", "s": "socket"}


def _errno(error: BadInput) -> int | None:
    return error.__cause__.errno if isinstance(error.__cause__, OSError) else None
