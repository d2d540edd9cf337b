"""File accesses of a Python module: the paths it reads, lists, writes, removes or links, as far as its text says."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gametape.syntax.resolved_module import ResolvedModule

AccessMode = Literal["read", "list", "write", "remove", "link"]
_READING = {
    "linecache.getline", "linecache.getlines", "runpy.run_path", "sqlite3.connect", "zipfile.ZipFile", "tarfile.open",
    "importlib.util.spec_from_file_location", "importlib.machinery.SourceFileLoader", "shelve.open", "dbm.open",
    "importlib.machinery.SourcelessFileLoader", "tokenize.open", "os.readlink", "mmap.mmap", "fileinput.input",
}  # fmt: skip
_LISTING = {"os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob", "os.fwalk", "pkgutil.walk_packages"}
_WRITING = {
    "shutil.copy",
    "shutil.copyfile",
    "shutil.copy2",
    "shutil.move",
    "os.rename",
    "os.replace",
    "shutil.copytree",
}
_REMOVING = {"os.remove", "os.unlink", "shutil.rmtree", "os.rmdir", "os.truncate"}
_METHODS: dict[str, AccessMode] = {
    "read_text": "read", "read_bytes": "read", "write_text": "write", "write_bytes": "write", "unlink": "remove",
    "iterdir": "list", "glob": "list", "rglob": "list", "rename": "write", "symlink_to": "link", "hardlink_to": "link",
    "touch": "write",
}  # fmt: skip


@dataclass(frozen=True)
class FileAccess:
    mode: AccessMode
    path: str
    node: ast.Call


@functools.lru_cache(maxsize=16)
def file_accesses(code: ResolvedModule) -> tuple[FileAccess, ...]:
    """Every access to a file whose path is at least partly constant."""
    calls = (node for node in code.nodes if isinstance(node, ast.Call))
    return tuple(use for node in calls for use in _uses(code, node) if use.path)


def _uses(code: ResolvedModule, node: ast.Call) -> Iterator[FileAccess]:
    name = (code.resolve(node.func) or "").removeprefix("builtins.")
    first = (
        node.args[0]
        if node.args
        else next((word.value for word in node.keywords if word.arg in ("file", "path")), None)
    )
    if name in ("open", "io.open", "codecs.open", "io.FileIO", "gzip.open", "os.fdopen"):
        mode = (
            node.args[1]
            if len(node.args) > 1
            else next((word.value for word in node.keywords if word.arg == "mode"), None)
        )
        yield FileAccess(_way(code.text_of(mode) or "r"), code.path_of(first), node)
    elif name == "os.open":
        flags = ast.dump(node.args[1]) if len(node.args) > 1 else ""
        yield FileAccess("write" if "O_WRONLY" in flags or "O_RDWR" in flags else "read", code.path_of(first), node)
    elif name in _READING:
        path = node.args[1] if name.startswith("importlib") and len(node.args) > 1 else first
        yield FileAccess("read", code.path_of(path), node)
    elif name in _LISTING:
        yield FileAccess("list", code.path_of(first), node)
    elif name in _REMOVING:
        yield FileAccess("remove", code.path_of(first), node)
    elif name in _WRITING and len(node.args) > 1:
        yield FileAccess("write", code.path_of(node.args[1]), node)
        yield FileAccess("read", code.path_of(node.args[0]), node)
    elif name in ("os.symlink", "os.link") and node.args:
        yield FileAccess("link", "/".join(filter(None, (code.path_of(argument) for argument in node.args[:2]))), node)
    elif isinstance(node.func, ast.Attribute):
        yield from _by_method(code, node, node.func)


def _by_method(code: ResolvedModule, node: ast.Call, func: ast.Attribute) -> Iterator[FileAccess]:
    if func.attr != "open" and func.attr not in _METHODS:
        return
    base = code.path_of(func.value)
    if func.attr == "open" and not (code.resolve(func.value) or "").startswith(
        ("webbrowser", "Image", "PIL", "zipfile")
    ):
        mode = node.args[0] if node.args else next((word.value for word in node.keywords if word.arg == "mode"), None)
        text = code.text_of(mode) or "r"
        yield FileAccess(_way(text) if len(text) < 5 else "read", base, node)
    elif func.attr in _METHODS:
        way = _METHODS[func.attr]
        pattern = code.path_of(node.args[0]) if way in ("list", "link") and node.args else ""
        yield FileAccess(way, "/".join(filter(None, (base, pattern))), node)


def _way(mode: str) -> AccessMode:
    return "write" if any(letter in mode for letter in "wax+") else "read"
