"""Test files that cannot be collected because a module is missing here that the workspace takes from elsewhere.

No work of an agent mends that: it cannot install. A missing module that the agent may be asked to write is another
matter, so a name counts as foreign only with a reason: it is a declared requirement, a well-known library, or a module
of a package imports it from outside that package.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from gametape.core.errors import MissingDependency
from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.minimum_counts import imported_modules
from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.mining.project_layout.declared_metadata import read_declared_metadata
from gametape.tasks.mining.project_layout.known_distributions import DISTRIBUTIONS_BY_MODULE
from gametape.tasks.mining.project_layout.requirement_groups import declared_requirements, parse_requirement
from gametape.watch.text_features import printable

_MISSING = re.compile(r"No module named '([\w.]+)'")
_LIBRARIES = (
    "aiohttp anyio boto3 celery click django fastapi flask httpx hypothesis jinja2 matplotlib mock msgpack networkx "
    "numpy orjson pandas pydantic pytest_asyncio pytest_mock redis requests rich scipy sqlalchemy sympy tomli torch "
    "tqdm trio typer urllib3 websockets werkzeug"
)


def check_modules(start: SourceTree, baseline: GoalBaseline, instruction: str, workspace: Path) -> str:
    """A warning about test files that miss a foreign module, or nothing. Raises `MissingDependency` where no test at
    all can be collected for such reasons."""
    missing = foreign_modules(start, baseline, instruction)
    if not missing:
        return ""
    file, module = next(iter(missing.items()))
    more = f" (and {len(missing) - 1} more files)" if len(missing) > 2 else " (and 1 more file)" * (len(missing) - 1)
    text = printable(
        f"{file} cannot be imported: No module named '{module}'{more}; "
        f"give --python, or install it, and pytest, into {workspace}/.venv"
    )
    if not baseline.results and set(missing) == set(baseline.broken):
        raise MissingDependency(text)
    return text


def foreign_modules(start: SourceTree, baseline: GoalBaseline, instruction: str) -> dict[str, str]:
    """For each test file that misses a module from elsewhere, the name of that module."""
    missing = {file: names[-1] for file, error in baseline.broken.items() if (names := _MISSING.findall(error))}
    if not missing:
        return {}
    own = _own_names(start, baseline.import_roots)
    reasons = _foreign_names(start, baseline, own)
    words = {*re.findall(r"\w+", instruction)}
    tops = {file: module.partition(".")[0] for file, module in missing.items()}
    return {file: missing[file] for file, top in tops.items() if top in reasons and top not in own | words}


def _own_names(start: SourceTree, roots: list[str]) -> set[str]:
    """Import names that the workspace has, and the name of its project, which may be unwritten."""
    name = read_declared_metadata(start).name
    own = {name, canonicalize_name(name).replace("-", "_")} if name else set()
    return own | {
        _inside(path, root).split("/")[0].removesuffix(".py") for root in roots for path in start.under([root])
    }


def _foreign_names(start: SourceTree, baseline: GoalBaseline, own: set[str]) -> set[str]:
    names = {*_LIBRARIES.split(), *DISTRIBUTIONS_BY_MODULE}
    for _, line in declared_requirements(start, read_declared_metadata(start)):
        if requirement := parse_requirement(line):
            distribution = canonicalize_name(requirement.name)
            names |= {distribution.replace("-", "_"), *_modules_by_distribution().get(distribution, ())}
    for path, content in start.files.items():
        if path.endswith(".py") and not is_under(path, baseline.test_paths) and _is_in_package(path, baseline):
            names |= {name.partition(".")[0] for name in imported_modules(content)}
    return names - own


def _is_in_package(path: str, baseline: GoalBaseline) -> bool:
    """Whether a module lies in a package, and so would import a module of its own project by the package's name."""
    return all("/" in _inside(path, root) for root in baseline.import_roots if root == "." or is_under(path, [root]))


def _inside(path: str, root: str) -> str:
    return path if root == "." else path.removeprefix(f"{root}/")


def _modules_by_distribution() -> Mapping[str, set[str]]:
    modules: dict[str, set[str]] = {}
    for module, distributions in DISTRIBUTIONS_BY_MODULE.items():
        for distribution in distributions:
            modules.setdefault(canonicalize_name(distribution), set()).add(module)
    return modules
