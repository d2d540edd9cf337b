"""Write a result into the workspace: all of it, or, if the workspace is not what it was, nothing."""

import os
import secrets
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.trouble import unwritable
from gametape.verify.tree import Tree

_MOST_NAMED = 5


def apply(workspace: Path, start: Tree, delivered: Tree) -> list[str]:
    """The files that were written or removed. Raises `BadInput`, with nothing changed, if any of them has moved on.

    Killed halfway it can be called again: a file that already is what it should be has not moved on.
    """
    changed = sorted(path for path in {*start, *delivered} if _entry(start, path) != _entry(delivered, path))
    moved = [path for path in changed if not _may_write(workspace, path, start, delivered)]
    if moved:
        more = f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
        raise BadInput(f"not applied: the workspace has changed meanwhile: {', '.join(moved[:_MOST_NAMED])}{more}")
    try:
        _write(workspace, changed, delivered)
    except OSError as error:
        raise unwritable(Path(os.fsdecode(error.filename or workspace)), error) from error
    return changed


def _entry(tree: Tree, path: str) -> tuple[bytes | None, bool]:
    return tree.files.get(path), path in tree.executable


def _may_write(workspace: Path, path: str, start: Tree, delivered: Tree) -> bool:
    """Whether a file is still as it was, or already as it is to be, with no link on the way to it."""
    target = workspace / path
    above = [
        workspace.joinpath(*target.relative_to(workspace).parts[:count]) for count in range(1, path.count("/") + 1)
    ]
    if any(place.is_symlink() or (place.exists() and not place.is_dir()) for place in above) or target.is_symlink():
        return False
    now = target.read_bytes() if target.is_file() else None
    if now is None and target.exists():
        return False
    return now in (start.files.get(path), delivered.files.get(path))


def _write(workspace: Path, changed: list[str], delivered: Tree) -> None:
    """Everything new is beside its place before the first file is replaced."""
    ready: list[tuple[Path, Path]] = []
    try:
        for path in (path for path in changed if path in delivered):
            target = workspace / path
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{secrets.token_hex(6)}.gametape")
            ready.append((temporary, target))
            temporary.write_bytes(delivered.files[path])
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
            temporary.chmod(mode | 0o111 if path in delivered.executable else mode & ~0o111)
        for temporary, target in ready:
            temporary.replace(target)
    finally:
        for temporary, _ in ready:
            temporary.unlink(missing_ok=True)
    for path in changed:
        if path not in delivered:
            (workspace / path).unlink(missing_ok=True)
