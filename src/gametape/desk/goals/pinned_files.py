"""The files of a workspace that decide what a shell command does, as far as the command and those files show.

For `make check` that is the Makefile, the files it includes and the shell scripts it runs. Product code that it runs
is not pinned: the agent has to be able to change it.
"""

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterable

from gametape.record.source_tree import SourceTree

_PACKAGE = ("package.json",)
_BY_PROGRAM = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "npm": _PACKAGE,
    "npx": _PACKAGE,
    "yarn": _PACKAGE,
    "pnpm": _PACKAGE,
    "bun": _PACKAGE,
    "task": ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
}
"""Programs that read their instructions from a file in the workspace; of several names the first that exists."""
INSTRUCTIONS = frozenset(name for names in _BY_PROGRAM.values() for name in names)
_SETTINGS = {
    **dict.fromkeys(("npm", "npx", "pnpm"), (".npmrc",)),
    "yarn": (".yarnrc", ".yarnrc.yml"),
    "bun": ("bunfig.toml",),
    "cargo": (".cargo/config.toml", ".cargo/config"),
}
"""Configuration files in which such a program finds other programs to use."""
_SHELL = re.compile(rb"#!.*\b(ba|da|z|k)?sh\b")
_SCRIPT, _INCLUDED = (".sh", ".bash"), (".mk", ".mak")
_WORD = re.compile(r"[\w./+-]+")
_VALUE = re.compile(r"(?:--[\w-]+=|-[A-Za-z]=?)(.+)", re.DOTALL)


def pinned_files(words: Iterable[str], directory: str, tree: SourceTree) -> set[str]:
    """The files of a tree that decide what a command with these words does."""
    words = [*_expand_words(words)]
    directories = _working_directories(words, directory, tree)
    files = {file for word in words for file in _files_named_by(word)}
    for module in (word.replace(".", "/") for option, word in itertools.pairwise(words) if option == "-m"):
        files |= {f"{module}.py", f"{module}/__main__.py"}
    pinned = {_join(base, file) for base in directories for file in files} & set(tree)
    known = {name for names in (*_BY_PROGRAM.values(), *_SETTINGS.values()) for name in names}
    waiting = [path for path in pinned if path.rpartition("/")[2] in known or path.endswith(_INCLUDED)]
    while waiting:
        path = waiting.pop()
        nearby = {*directories, posixpath.dirname(path) or "."}
        inner = {_join(near, word) for word in _WORD.findall(tree.text(path)) for near in nearby}
        new = {path for path in inner & set(tree) if _is_script(path, tree)} - pinned
        pinned |= new
        waiting += [path for path in new if path.endswith(_INCLUDED)]
    return pinned


def shadowing_files(words: Iterable[str], directory: str, tree: SourceTree) -> set[str]:
    """Files that the tree does not have and that would be used in place of those it has."""
    words = [*_expand_words(words)]
    directories = _working_directories(words, directory, tree)
    programs = {posixpath.basename(word) for word in words}
    shadowing: set[str] = set()
    for program in programs:
        for base in directories:
            names = {_join(base, name) for name in _BY_PROGRAM.get(program, ())}
            shadowing |= names if names & set(tree) else set()
            shadowing |= {_join(base, name) for name in _SETTINGS.get(program, ())}
    return shadowing - set(tree)


def _expand_words(words: Iterable[str]) -> Iterable[str]:
    """The words, the values of options such as --file=X, and the words of quoted scripts."""
    for word in words:
        yield word
        if value := _VALUE.fullmatch(word):
            yield value[1]
        if re.search(r"\s", word):
            try:
                yield from _expand_words(inner for inner in shlex.split(word.replace(";", " ")) if inner != word)
            except ValueError:
                yield from _WORD.findall(word)


def _working_directories(words: Iterable[str], directory: str, tree: SourceTree) -> set[str]:
    """The directories in which the command may run: its own, and those that it names."""
    named = {_join(directory, word) for word in words}
    return {directory, *(path for path in named if path != "." and tree.under([path]).without({path}).files)}


def _files_named_by(word: str) -> set[str]:
    program = posixpath.basename(word)
    return {*_BY_PROGRAM.get(program, ()), *_SETTINGS.get(program, ()), word}


def _is_script(path: str, tree: SourceTree) -> bool:
    return path.endswith((*_SCRIPT, *_INCLUDED)) or bool(_SHELL.match(tree.files[path]))


def _join(directory: str, file: str) -> str:
    return posixpath.normpath(posixpath.join(directory, file))
