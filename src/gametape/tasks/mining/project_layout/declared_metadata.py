"""Read a project's metadata files as data, without running them; of `setup.py`, only literal values."""

import ast
import configparser
import email.message
import email.parser
import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gametape.record.source_tree import SourceTree
from gametape.syntax.source import parse_or_none

NOT_LITERAL = object()


@dataclass(frozen=True)
class DeclaredMetadata:
    """The parsed metadata files of a project. A missing or unreadable file is empty."""

    pyproject: Mapping[str, Any] = field(default_factory=dict)
    setup_cfg: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    setup_py: Mapping[str, Any] = field(default_factory=dict)
    """Those keyword arguments of `setup` that are literals or calls of `find_packages`."""
    pkg_info: email.message.Message = field(default_factory=email.message.Message)
    pkg_info_text: str = ""
    top_level: tuple[str, ...] = ()
    """The import names in `top_level.txt` of a source distribution."""
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The requirements in its `requires.txt`, by extra; unconditional ones are under the empty name."""

    @property
    def project(self) -> Mapping[str, Any]:
        return toml_table(self.pyproject, "project")

    @property
    def poetry(self) -> Mapping[str, Any]:
        return toml_table(self.pyproject, "tool", "poetry")

    @property
    def name(self) -> str:
        """The distribution's name, or an empty text."""
        metadata = self.setup_cfg.get("metadata", {})
        candidates = (
            self.pkg_info.get("Name"),
            self.project.get("name"),
            self.poetry.get("name"),
            metadata.get("name"),
        )
        return next(
            (str(name).strip() for name in (*candidates, self.setup_py.get("name")) if isinstance(name, str)), ""
        )

    @property
    def version(self) -> str:
        """The distribution's version if it is literal, or an empty text."""
        metadata = self.setup_cfg.get("metadata", {})
        primary = (self.pkg_info.get("Version"), self.project.get("version"), self.poetry.get("version"))
        candidates = (*primary, metadata.get("version"), self.setup_py.get("version"))
        return next((text.strip() for text in candidates if isinstance(text, str) and text.strip()[:1].isdigit()), "")


@dataclass(frozen=True)
class FindPackagesCall:
    """A call of `find_packages` in a `setup.py`."""

    where: str = "."
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()


def read_declared_metadata(tree: SourceTree) -> DeclaredMetadata:
    info = next((path for path in ("PKG-INFO", *_labels(tree, "PKG-INFO")) if path in tree), None)
    text = tree.text(info) if info else ""
    tops = [line.strip() for path in _labels(tree, "top_level.txt") for line in tree.text(path).splitlines()]
    return DeclaredMetadata(
        pyproject=read_toml(tree, "pyproject.toml"),
        setup_cfg=read_ini(tree, "setup.cfg"),
        setup_py=_setup_py(tree.text("setup.py")) if "setup.py" in tree else {},
        pkg_info=email.parser.Parser().parsestr(text),
        pkg_info_text=text,
        top_level=tuple(top for top in tops if top),
        requires=_requires([line for path in _labels(tree, "requires.txt") for line in ini_lines(tree.text(path))]),
    )


def _requires(given: list[str]) -> dict[str, tuple[str, ...]]:
    """The sections of a `requires.txt`: `[extra:marker]` and the lines below."""
    requirements: dict[str, tuple[str, ...]] = {}
    extra, marker = "", ""
    for line in given:
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
        else:
            requirements[extra] = (*requirements.get(extra, ()), f"{line} ; {marker}" if marker else line)
    return requirements


def _labels(tree: SourceTree, name: str) -> list[str]:
    return sorted(path for path in tree if path.endswith(f".egg-info/{name}"))


def toml_table(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The table under these keys; empty if there is none."""
    for key in keys:
        inner = document.get(key)
        document = inner if isinstance(inner, Mapping) else {}
    return document


def read_toml(tree: SourceTree, path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(tree.text(path)) if path in tree else {}
    except (ValueError, RecursionError):
        return {}


def read_ini(tree: SourceTree, path: str) -> Mapping[str, Mapping[str, str]]:
    if path not in tree:
        return {}
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(tree.text(path))
    except configparser.Error:
        return {}
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


def string_list(value: object) -> list[str]:
    """The strings of a list, or a single string as a list; empty for anything else."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []


def ini_lines(text: str) -> list[str]:
    """The lines of an ini value or a file, without comments."""
    plain = (line.strip() for line in text.splitlines())
    return [line.split(" #")[0].strip() for line in plain if line and not line.startswith(("#", ";"))]


def _setup_py(source: str) -> Mapping[str, Any]:
    module = parse_or_none(source)
    if module is None:
        return {}
    names = {
        target.id: node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    arguments: dict[str, Any] = {}
    for call in (node for node in ast.walk(module) if isinstance(node, ast.Call) and _called(node) == "setup"):
        for keyword, value in _keywords(call, names):
            if (literal := _literal(value, names)) is not NOT_LITERAL:
                arguments[keyword] = literal
    return arguments


def _keywords(call: ast.Call, names: Mapping[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value
            continue
        given = names.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
        if isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        elif isinstance(given, ast.Call) and _called(given) == "dict":
            yield from ((inner.arg, inner.value) for inner in given.keywords if inner.arg)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _literal(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> Any:  # noqa: PLR0911
    """The value of a literal, of a name for one, or of a sum of such; else NOT_LITERAL."""
    inner = functools.partial(_literal, names=names, depth=depth + 1)
    if depth > 20:
        return NOT_LITERAL
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return inner(names[node.id]) if node.id in names else NOT_LITERAL
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [value for item in node.elts if (value := inner(item)) is not NOT_LITERAL]
    if isinstance(node, ast.Dict):
        pairs = [(inner(key), inner(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
        return {key: value for key, value in pairs if isinstance(key, str) and value is not NOT_LITERAL}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        both = [inner(node.left), inner(node.right)]
        return both[0] + both[1] if {*map(type, both)} in ({list}, {str}) else NOT_LITERAL
    if isinstance(node, ast.Call) and _called(node) in ("find_packages", "find_namespace_packages", "find"):
        given = {keyword.arg: inner(keyword.value) for keyword in node.keywords}
        given |= dict(zip(("where", "exclude", "include"), map(inner, node.args), strict=False))
        where, include = given.get("where"), string_list(given.get("include"))
        return FindPackagesCall(
            where if isinstance(where, str) else ".", tuple(include or ["*"]), tuple(string_list(given.get("exclude")))
        )
    return NOT_LITERAL
