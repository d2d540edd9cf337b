"""Which files of a workspace say what a shell command does, as far as its words and those files tell.

The command may be somebody's `make check`: then the Makefile decides, and so do the files it includes and the shell
scripts it runs. Product code that is run is not pinned by that, or nothing could ever be mended.
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
"""Programs that do what a file of the workspace says: of several names the one that is there first counts."""
_SETTINGS = {
    **dict.fromkeys(("npm", "npx", "pnpm"), (".npmrc",)),
    "yarn": (".yarnrc", ".yarnrc.yml"),
    "bun": ("bunfig.toml",),
    "cargo": (".cargo/config.toml", ".cargo/config"),
}
"""Where such a program is told which other programs to use."""
_SHELL = re.compile(rb"#!.*\b(ba|da|z|k)?sh\b")
_SCRIPT, _INCLUDED = (".sh", ".bash"), (".mk", ".mak")
_WORD = re.compile(r"[\w./+-]+")
_VALUE = re.compile(r"(?:--[\w-]+=|-[A-Za-z]=?)(.+)", re.DOTALL)


def pinned_files(words: Iterable[str], directory: str, tree: SourceTree) -> set[str]:
    """The files of a tree that the words of a command lead to."""
    said = [*_said(words)]
    places = _places(said, directory, tree)
    files = {file for word in said for file in _named(word)}
    for module in (word.replace(".", "/") for option, word in itertools.pairwise(said) if option == "-m"):
        files |= {f"{module}.py", f"{module}/__main__.py"}
    found = {_join(place, file) for place in places for file in files} & set(tree)
    known = {name for names in (*_BY_PROGRAM.values(), *_SETTINGS.values()) for name in names}
    waiting = [path for path in found if path.rpartition("/")[2] in known or path.endswith(_INCLUDED)]
    while waiting:
        path = waiting.pop()
        near = {*places, posixpath.dirname(path) or "."}
        inner = {_join(place, word) for word in _WORD.findall(tree.text(path)) for place in near}
        new = {one for one in inner & set(tree) if _is_script(one, tree)} - found
        found |= new
        waiting += [one for one in new if one.endswith(_INCLUDED)]
    return found


def shadowing_files(words: Iterable[str], directory: str, tree: SourceTree) -> set[str]:
    """Files that a tree does not have and that would decide in the place of those it has."""
    said = [*_said(words)]
    places = _places(said, directory, tree)
    programs = {posixpath.basename(word) for word in said}
    found: set[str] = set()
    for program in programs:
        for place in places:
            names = {_join(place, name) for name in _BY_PROGRAM.get(program, ())}
            found |= names if names & set(tree) else set()
            found |= {_join(place, name) for name in _SETTINGS.get(program, ())}
    return found - set(tree)


def _said(words: Iterable[str]) -> Iterable[str]:
    """The words, the values that options have in one word with them, and the words of scripts in quotes."""
    for word in words:
        yield word
        if value := _VALUE.fullmatch(word):
            yield value[1]
        if re.search(r"\s", word):
            try:
                yield from _said(one for one in shlex.split(word.replace(";", " ")) if one != word)
            except ValueError:
                yield from _WORD.findall(word)


def _places(said: Iterable[str], directory: str, tree: SourceTree) -> set[str]:
    """Where the command may be at work: its directory, and those that it names."""
    named = {_join(directory, word) for word in said}
    return {directory, *(place for place in named if place != "." and tree.under([place]).without({place}).files)}


def _named(word: str) -> set[str]:
    program = posixpath.basename(word)
    return {*_BY_PROGRAM.get(program, ()), *_SETTINGS.get(program, ()), word}


def _is_script(path: str, tree: SourceTree) -> bool:
    return path.endswith((*_SCRIPT, *_INCLUDED)) or bool(_SHELL.match(tree.files[path]))


def _join(place: str, file: str) -> str:
    return posixpath.normpath(posixpath.join(place, file))
