"""Which of the files that the success command reads belong to the check, and which are the product.

The check is pinned: instructions of shells and of `make`, programs that import or start other files of the workspace,
their helpers, and data. The product is what they import, compile or start, and what lies beside it. If nothing is left
over in that way, the product is what lies at the end of the chain: the last script, then the data. `--pin` and
`--product` overrule all of it.
"""

import posixpath
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass, field

from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.instruction_files import lower_instructions
from gametape.desk.goals.pinned_files import INSTRUCTIONS
from gametape.record.source_tree import is_under, parent_directories
from gametape.sandbox.policy import WORKSPACE

_SOURCE = re.compile(
    r"pyi?|pyx|[mc]?[jt]s|[jt]sx|vue|svelte|[ch]|cc|[ch]pp|[ch]xx|hh|mm?|rs|go|java|kts?|scala|groovy|rb|p[lm]|php|lua|r|"
    r"jl|swift|hs|mli?|exs?|erl|cljs?|[cf]s|vb|d|zig|nim|dart|sql|html?|s?css|less|f(90|or)?|asm|s|s?v|vhd|proto|graphql",
    re.IGNORECASE,
)
"""The endings of code."""
_CHECKS = re.compile(
    r"(^|[/_.-])(tests?|checks?|checkers?|specs?|verif(y|ies|ier)|lint|validat(e|or|ion)|judge|grad(e|er)|ci|tools?|"
    r"scripts?|bench(mark)?s?|asserts?|accept(ance)?|golden|expected|fixtures?|thresholds?|snapshots?)(?=$|[/_.-]|\d)",
    re.IGNORECASE,
)
"""Names by which people call their checks. They decide only between files that do the same."""
_COMPARED_WITH = re.compile(
    r"(^|[/_.-])(want(ed)?|gold|expect|correct|right|truth|oracle|ref(erences?|s)?|answers?|solutions?|should|"
    r"good|baseline|goal|target|approved|known|snap|limits?|cases?)(?=$|[/_.-]|\d)",
    re.IGNORECASE,
)
"""Names by which people call what results are compared with, beside those of checks."""
_TESTS = re.compile(r"(^|[/_.-])(tests?|specs?)(?=$|[/_.-]|\d)", re.IGNORECASE)
_CONFIGURATION = re.compile(r"(^|/)(\.[^/]+|[^/]+\.(toml|cfg|ini|conf|config|lock|mk|ya?ml|json|env|xml|properties))$")
_IS_MISSING = re.compile(
    r"No module named|Cannot find (module|package)|can't open file|Can't (locate|open)|cannot (open|find)|"
    r"No such file|not found|No rule to make target|undefined reference|cannot import name|unresolved import"
)
_LACKS = re.compile(
    r"No rule to make target [`'\"]([^'\"]+)'\.|[Mm]issing script: [\"']?([\w:-]+)|not contain recipe `([^`]+)`"
)
"""What programs say whose instructions lack what the command asks for."""
_SHEBANG = re.compile(rb"#!.*\b(python|node|perl|ruby|php|lua|awk)[\d.]*\b")
_PYTHON_PATH = re.compile(rb"\bPYTHONPATH=[\"']?([\w./:-]+)|\bsys\.path\.insert\(\s*0\s*,\s*[\"']([\w./-]+)[\"']")
_TOP = ""
_LONG_ENOUGH = 4
"""Letters of a name without its ending that is looked for in code."""


@dataclass(frozen=True)
class FileRoles:
    """What people said about their files: `--product` and `--pin`, and where the tests are."""

    product: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    test_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class DecidingFiles:
    """The files that a command reads, by their part in it."""

    pinned: frozenset[str]
    product: frozenset[str]
    check_directories: frozenset[str] = field(default_factory=frozenset)
    """Directories with files of the check and none of the product."""


def is_source(path: str, content: bytes = b"") -> bool:
    """Whether a file is code, but no instructions of a shell or of `make`."""
    name = path.rpartition("/")[2]
    return bool(_SOURCE.fullmatch(name.rpartition(".")[2])) if "." in name else bool(_SHEBANG.match(content))


def is_named_check(path: str) -> bool:
    """Whether a path has a name that people give to checks."""
    return bool(_CHECKS.search(path))


def is_compared_with(path: str) -> bool:
    """Whether a path has a name that people give to what results are compared with."""
    return bool(_COMPARED_WITH.search(path))


def says_missing(output: str) -> bool:
    """Whether a program says that something is missing."""
    return bool(_IS_MISSING.search(output))


def find_deciding_files(run: CommandTrace, roles: FileRoles, output: str = "") -> DecidingFiles:
    """The parts of a command's files. `output` is what it printed: where something is missing, the product is that."""
    read = set(run.read_by)
    said_product, said_pinned = _below(read, roles.product), _below(read, roles.pinned)
    missing = says_missing(output)
    sources = {path for path in read if is_source(path, run.tree.files[path])}
    tests = _below(read, roles.test_paths) | _named_tests(sources)
    instructions = {path for path in read if any(map(run.runs_instructions, run.read_by[path]))}
    drivers = _drivers(run, sources - tests)
    started = _started_by_source(run, drivers, tests)
    leaves = {path for path in {*run.scripts.values()} - drivers - started if _CHECKS.search(path)}
    pinned = said_pinned | tests | (instructions - sources) | drivers | leaves
    pinned |= _helpers(run, pinned, sources - pinned, missing) - started
    product = sources - pinned
    directories = {_directory(path) for path in product} - {_TOP}
    product |= {
        path
        for path in read - sources - pinned
        if _directory(path) in directories or _is_input_of_tool(run, path, product)
    }
    product |= _named_by_product_alone(run, read - sources - pinned, product, pinned)
    if not product | said_product and not missing:
        product = _end_of_chain(run, read, drivers, tests | said_pinned)
    product = (product - said_pinned) | said_product
    pinned = read - product
    checks = {_directory(path) for path in pinned & sources} - {_directory(path) for path in product} - {_TOP}
    return DecidingFiles(frozenset(pinned), frozenset(product), frozenset(checks))


def added_files_of_check(run: CommandTrace, known: DecidingFiles, start: Collection[str]) -> set[str]:
    """Files that the command asks for, that were not there at first, and that change what it checks: read or looked for
    by a shell or by `make`, settings of a tool, in a directory of the check, or found in place of a module of the check
    or of the standard library."""
    roots = {_directory(script) for script in run.scripts.values()} | {_TOP, "src"} | _named_roots(run, known)
    before = {_module_name(path) for path in known.pinned if _is_top_level(path, run, roots)} | sys.stdlib_module_names
    directories = _new_directories_without_code(run, start)
    added = set()
    for path in (path for path in run.tree if path not in start):
        numbers = set(run.looked_at_by.get(path, ()))
        numbers |= {number for above in parent_directories(path) & directories for number in run.looked_at_by[above]}
        shadows = _is_top_level(path, run, roots) and _module_name(path) in before
        if numbers and (
            shadows
            or _directory(path) in known.check_directories
            or _instructs(run, path, {number for number in numbers if not run.runs_below(number, known.product)})
            or configures_tool(run, path, known.product)
        ):
            added.add(path)
    return added


def _named_roots(run: CommandTrace, known: DecidingFiles) -> set[str]:
    """Directories that the command or files of the check put before those in which Python looks for modules."""
    words = [word.encode() for process in run.trace.processes for word in process.words]
    texts = [*words, *(run.tree.files[path] for path in known.pinned if path in run.tree)]
    named = [text for one in texts for names in _PYTHON_PATH.findall(one) for text in names if text]
    roots = {posixpath.normpath(part.decode(errors="replace")) for text in named for part in text.split(b":") if part}
    return {root.removeprefix(f"{WORKSPACE}/") for root in roots} - {"."}


def _new_directories_without_code(run: CommandTrace, start: Collection[str]) -> set[str]:
    """Directories that the command looked for, that were not there at first, and in which there is no code."""
    existing = {above for path in start for above in parent_directories(path)}
    with_code = {above for path in run.tree if is_source(path) for above in parent_directories(path)}
    return set(run.looked_at_by) - existing - with_code


def _instructs(run: CommandTrace, path: str, numbers: set[int]) -> bool:
    """Whether a shell or `make` asks for a file that is neither code nor run as a program of its own."""
    if is_source(path, run.tree.files[path]) or path in run.scripts.values():
        return False
    return any(map(run.runs_instructions, numbers))


def configures_tool(run: CommandTrace, path: str, product: Collection[str]) -> bool:
    """Whether an installed program, and no code of the workspace, reads a file that looks like settings. What it does
    for the product is the product's own business."""
    readers = {number for number in run.read_by.get(path, ()) if not run.runs_below(number, product)}
    own_code = any(number in run.scripts or run.runs_tests(number) for number in readers)
    return bool(readers) and not own_code and bool(_CONFIGURATION.search(path))


def _is_top_level(path: str, run: CommandTrace, roots: set[str]) -> bool:
    """Whether Python finds a file by its bare name in one of these directories."""
    if not path.endswith(".py"):
        return False
    directory = _directory(path.removesuffix("/__init__.py") if path.endswith("/__init__.py") else path)
    return directory in roots and f"{directory}/__init__.py".lstrip("/") not in run.tree


def _is_input_of_tool(run: CommandTrace, path: str, sources: set[str]) -> bool:
    """Whether an installed program reads a file beside sources of the product, and neither its name nor its kind speaks
    against it: a spelling check reads documents."""
    if _CONFIGURATION.search(path) or _CHECKS.search(path):
        return False
    readers = run.read_by[path]
    if any(run.runs_instructions(number) or number in run.scripts or run.runs_tests(number) for number in readers):
        return False
    return any(readers & run.read_by[source] for source in sources)


def _named_by_product_alone(run: CommandTrace, data: set[str], product: set[str], check: set[str]) -> set[str]:
    """Data that processes with code of the product read, whose name stands in that code and nowhere in the check."""
    readers = {number for path in product for number in run.read_by[path]}
    found = set()
    for path in data:
        name = path.rpartition("/")[2].encode()
        names = [name, stem] if len(stem := name.partition(b".")[0]) >= _LONG_ENOUGH else [name]
        in_product = any(one in run.tree.files[source] for source in product for one in names)
        in_check = any(one in run.tree.files[other] for other in check for one in names)
        if run.read_by[path] <= readers and in_product and not in_check:
            found.add(path)
    return found


def _below(paths: set[str], parents: tuple[str, ...]) -> set[str]:
    return {path for path in paths if is_under(path, list(parents))} if parents else set()


def _named_tests(sources: set[str]) -> set[str]:
    """Sources that are called tests, if there are others."""
    named = {path for path in sources if _TESTS.search(path)}
    return named if sources - named else set()


def _drivers(run: CommandTrace, sources: set[str]) -> set[str]:
    """Scripts whose process reads other sources of the workspace, or starts a process that runs or reads one."""
    reads: dict[int, set[str]] = {}
    for path in sources:
        for number in run.read_by[path]:
            reads.setdefault(number, set()).add(path)
    drivers: set[str] = set()
    for number in {*reads, *run.scripts}:
        touched = {*reads.get(number, set()), *([run.scripts[number]] if number in run.scripts else [])}
        for above in (number, *run.ancestors(number)):
            script = run.scripts.get(above)
            if script is not None and touched - {script} and not _is_below(run, script, number):
                drivers.add(script)
    return drivers


def _started_by_source(run: CommandTrace, drivers: set[str], tests: set[str]) -> set[str]:
    """Programs that code of the check starts, that start and import nothing themselves, that nobody imports, and whose
    own name is not that of a check: what such a program prints is looked at, wherever it lies."""
    started = set()
    for number, script in run.scripts.items():
        above = {run.scripts[other] for other in run.ancestors(number) if other in run.scripts} - {script}
        if (
            any(path in drivers and is_source(path) for path in above)
            and script not in drivers | tests
            and not _CHECKS.search(script.rpartition("/")[2])
            and all(run.scripts.get(reader) == script for reader in run.read_by.get(script, ()))
        ):
            started.add(script)
    return started


def lacking_instructions(run: CommandTrace, output: str) -> set[str]:
    """Instructions that lack the very target or script that the command names: they have to be written."""
    lacking = {name for names in _LACKS.findall(output) for name in names if name}
    words = {word for process in run.trace.processes for word in process.words[1:]}
    return {path for path in run.read_by if path.rpartition("/")[2] in INSTRUCTIONS} if lacking & words else set()


def _is_below(run: CommandTrace, script: str, number: int) -> bool:
    """Whether a process only runs the same script again."""
    return run.scripts.get(number) == script and not any(
        path != script and is_source(path) for path, numbers in run.read_by.items() if number in numbers
    )


def _helpers(run: CommandTrace, pinned: set[str], sources: set[str], missing: bool) -> set[str]:
    """Sources that belong to the check because of where they lie: in a package that is run with `-m`, or in a directory
    of pinned scripts that has the name of a check. If that is every source, none of them does. The `__init__` files
    above a pinned script do too, unless the product is in the same package."""
    modules = {name.replace(".", "/") for name in run.module_names()}
    packages = {_directory(path) for path in pinned if path.endswith("/__main__.py")}
    packages = {package for package in packages if any(f"/{package}".endswith(f"/{name}") for name in modules)}
    places = packages | {_directory(path) for path in pinned if is_source(path) and _CHECKS.search(_directory(path))}
    helpers = _below(sources, tuple(sorted(places - {_TOP})))
    if helpers == sources and not missing:
        helpers = set()
    inits = {
        f"{'/'.join(script.split('/')[:depth])}/__init__.py"
        for script in pinned & {*run.scripts.values()}
        for depth in range(1, script.count("/") + 1)
    }
    product = sources - helpers - inits
    shared = {path for path in inits if _below(product, (_directory(path),)) and not _CHECKS.search(_directory(path))}
    return helpers | (inits & sources - shared)


def _end_of_chain(run: CommandTrace, read: set[str], drivers: set[str], others: set[str]) -> set[str]:
    """The scripts that start nothing else, or else the instructions below the first ones and the data, without what is
    named like a part of a check."""
    started = {
        script
        for number, script in run.scripts.items()
        if script not in drivers
        and any(run.scripts.get(above, script) != script for above in run.ancestors(number))
        and not any(number in run.ancestors(other) and run.scripts.get(other) for other in run.scripts)
    }
    candidates = started - others
    if not candidates:
        below = {path for path in lower_instructions(run) - others if not _CHECKS.search(path)}
        instructed = {path for path in read if any(map(run.runs_instructions, run.read_by[path]))}
        data = read - {*run.scripts.values()} - instructed - others
        data = {path for path in data if not _CONFIGURATION.search(path)}
        results = {path for path in data if not is_compared_with(path)}
        candidates = below | results or data
    return {path for path in candidates if not _CHECKS.search(path)}


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _module_name(path: str) -> str:
    """The name by which Python finds a file in its directory: that of the package for an `__init__`."""
    stem = path.removesuffix(".py")
    return stem.removesuffix("/__init__").rpartition("/")[2]
