"""Read the requirements that a project declares, in any of its files, as lines under the names of their groups."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.project_layout.declared_metadata import (
    DeclaredMetadata,
    ini_lines,
    read_ini,
    string_list,
    toml_table,
)

_FOR_TESTS = re.compile(
    r"(^|[^a-z])(tests?|testing|unittests?|pytest|dev|devel|develop|development|ci|checks?|qa)([^a-z]|$)"
)
_REFERENCE = re.compile(r"^(?:-r|--requirement)[ =]*(.+)$")
_ENVIRONMENT = re.compile(r"testenv(:(py\d*|python|tests?|unit\w*))?$")
_FACTOR = re.compile(r"^(?:(?:py[\d{},]*|tests?): +)?(?=[A-Za-z-])(?!\S+: )")
"""The tox factors before a requirement of plain environments; other factors are for special ones."""
_DEEPEST = 8

GroupedRequirement = tuple[str, str]
"""A group, and a requirement line in it as written. The group of unconditional requirements has an empty name."""


def is_test_group(group: str) -> bool:
    return bool(_FOR_TESTS.search(group.lower()))


def declared_requirements(tree: SourceTree, declared: DeclaredMetadata) -> Iterator[GroupedRequirement]:
    """Every declared requirement, the most reliable sources first."""
    yield from _of_info(declared)
    yield from (("", line) for line in string_list(declared.project.get("dependencies")))
    for group, given in toml_table(declared.project, "optional-dependencies").items():
        yield from ((group, line) for line in string_list(given))
    yield from _of_poetry(declared)
    yield from _of_setuptools(declared)
    yield from ((extra, line) for extra, lines in declared.requires.items() for line in lines)
    groups = toml_table(declared.pyproject, "dependency-groups")
    for group in groups:
        yield from ((group, line) for line in _of_group(groups, group, 0))
    yield from _of_tools(declared)
    yield from _of_tox(tree)
    yield from _of_files(tree)


def parse_requirement(line: str) -> Requirement | None:
    """A line as a requirement by name, or None. A URL is dropped, because what is there would have to be built."""
    try:
        requirement = Requirement(line.split(" --", maxsplit=1)[0].strip())
    except InvalidRequirement:
        return None
    requirement.url = None
    return requirement


def _of_info(declared: DeclaredMetadata) -> Iterator[GroupedRequirement]:
    for line in declared.pkg_info.get_all("Requires-Dist") or []:
        requirement = parse_requirement(str(line))
        if requirement is None:
            continue
        extras = re.findall(r"""extra *== *['"]([^'"]+)['"]""", str(requirement.marker or ""))
        yield from ((extra, str(line)) for extra in extras or [""])


def _of_setuptools(declared: DeclaredMetadata) -> Iterator[GroupedRequirement]:
    options = declared.setup_cfg.get("options", {})
    setup = declared.setup_py
    yield from (
        ("", line)
        for line in [*ini_lines(options.get("install_requires", "")), *string_list(setup.get("install_requires"))]
    )
    for group, text in declared.setup_cfg.get("options.extras_require", {}).items():
        yield from ((group, line) for line in ini_lines(text))
    for group, given in toml_table(setup, "extras_require").items():
        yield from ((group, line) for line in string_list(given))
    yield from (
        ("tests", line)
        for line in [*ini_lines(options.get("tests_require", "")), *string_list(setup.get("tests_require"))]
    )


def _of_poetry(declared: DeclaredMetadata) -> Iterator[GroupedRequirement]:
    poetry = declared.poetry
    groups = {"": toml_table(poetry, "dependencies"), "dev": toml_table(poetry, "dev-dependencies")}
    groups |= {name: toml_table(poetry, "group", name, "dependencies") for name in toml_table(poetry, "group")}
    for group, given in groups.items():
        for name, wanted in given.items():
            optional = isinstance(wanted, Mapping) and wanted.get("optional")
            if name.lower() != "python" and not optional:
                yield group, _poetry_line(name, wanted)


def _poetry_line(name: str, wanted: Any) -> str:
    """A requirement line with Poetry's version operators translated to standard ones."""
    version = wanted.get("version", "*") if isinstance(wanted, Mapping) else wanted
    marker = wanted.get("markers", "") if isinstance(wanted, Mapping) else ""
    extras = ",".join(string_list(wanted.get("extras"))) if isinstance(wanted, Mapping) else ""
    parts = [_poetry_bound(part.strip()) for part in version.split(",")] if isinstance(version, str) else []
    bounds = ",".join(part for part in parts if part)
    return f"{name}{f'[{extras}]' if extras else ''}{bounds}{f' ; {marker}' if marker else ''}"


def _poetry_bound(bound: str) -> str:
    if "*" in bound or "||" in bound or not bound:
        return "" if not re.fullmatch(r"(==)?\d[\d.]*\.\*", bound) else f"=={bound.removeprefix('==')}"
    if bound[0] in "^~" and not bound.startswith("~="):
        numbers = bound[1:].strip().split(".")
        if not all(number.isdigit() for number in numbers):
            return ""
        fixed = _caret(numbers) if bound[0] == "^" else min(2, len(numbers))
        upper = [*numbers[: fixed - 1], str(int(numbers[fixed - 1]) + 1)]
        return f">={'.'.join(numbers)},<{'.'.join(upper)}"
    return f"=={bound}" if bound[0].isdigit() else bound


def _caret(numbers: list[str]) -> int:
    """How many version numbers a caret fixes: up to the first that is not zero."""
    return next((index + 1 for index, number in enumerate(numbers) if int(number)), len(numbers))


def _of_group(groups: Mapping[str, Any], group: str, depth: int) -> Iterator[str]:
    given = groups.get(group)
    for item in given if isinstance(given, list) and depth < _DEEPEST else []:
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping) and isinstance(inner := item.get("include-group"), str):
            names = [name for name in groups if canonicalize_name(name) == canonicalize_name(inner)]
            yield from (line for name in names for line in _of_group(groups, name, depth + 1))


def _of_tools(declared: DeclaredMetadata) -> Iterator[GroupedRequirement]:
    tool = toml_table(declared.pyproject, "tool")
    yield from (("dev", line) for line in string_list(toml_table(tool, "uv").get("dev-dependencies")))
    for group, given in toml_table(tool, "pdm", "dev-dependencies").items():
        yield from ((group, line) for line in string_list(given))
    for name in toml_table(tool, "hatch", "envs"):
        environment = toml_table(tool, "hatch", "envs", name)
        group = "test" if name == "default" else name
        lines = [*string_list(environment.get("dependencies")), *string_list(environment.get("extra-dependencies"))]
        yield from ((group, line) for line in lines)


def _of_tox(tree: SourceTree) -> Iterator[GroupedRequirement]:
    for name, section in read_ini(tree, "tox.ini").items():
        if _ENVIRONMENT.match(name):
            for line in ini_lines(section.get("deps", "")):
                if not (factor := _FACTOR.match(line)):
                    continue
                plain = line[factor.end() :]
                if match := _REFERENCE.match(plain):
                    yield from (
                        ("test", required) for required in _of_file(tree, match[1].replace("{toxinidir}/", ""), 0)
                    )
                else:
                    yield "test", plain


def _of_files(tree: SourceTree) -> Iterator[GroupedRequirement]:
    for path in sorted(tree):
        if path.endswith((".txt", ".in", ".pip")) and path.count("/") <= 2 and "require" in path.lower():
            group = "" if path in ("requirements.txt", "requirements.in") else path.lower()
            yield from ((group, line) for line in _of_file(tree, path, 0))


def _of_file(tree: SourceTree, path: str, depth: int) -> Iterator[str]:
    plain = path.strip().removeprefix("./")
    if plain not in tree or depth > _DEEPEST:
        return
    for line in ini_lines(tree.text(plain)):
        if match := _REFERENCE.match(line):
            yield from _of_file(tree, f"{plain.rpartition('/')[0]}/{match[1].strip()}".lstrip("/"), depth + 1)
        elif not line.startswith("-"):
            yield line
