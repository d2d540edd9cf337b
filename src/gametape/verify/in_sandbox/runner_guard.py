"""A pytest plugin that notices changes to the running test session: its hooks, its items, its reporter.

`RunnerFingerprint` compares functions and classes of the runner. A forger needs none of them: a hook appended to a
list, or a method set on one item, is enough. The first state is taken before a conftest may import product code.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from .reporter import Reporter

_METHODS_OF_ITEMS = ("runtest", "setup", "teardown", "repr_failure", "reportinfo", "_getobj", "listchain")
_METHODS_OF_SESSIONS = ("gethookproxy", "_node_location_to_relpath", "pytest_runtest_logreport")
_RUNNER = ("_pytest", "pytest", "pluggy", "in_sandbox")


class RunnerGuard:
    """`report` is given the changes, as `RunnerFingerprint` names them; `runner_changes` are that one's own. `prepare`
    runs before any conftest."""

    def __init__(
        self,
        reporter: Reporter,
        sources: Sequence[str],
        report: Callable[[list[str]], None],
        prepare: Callable[[Any], None],
        collected: Callable[[Any], None],
        runner_changes: Callable[[], list[str]],
    ) -> None:
        self._report = report
        self._prepare = prepare
        self._collected = collected
        self._runner_changes = runner_changes
        self._items = _ItemChecks()
        self._prefixes = tuple(f"{path}/" if os.path.isdir(path) else path for path in sources)
        self._reporter_changes = _reporter_comparison(reporter)
        self._hook_changes: Callable[[], list[str]] = list
        self._plugins: Callable[[], list[Any]] = list

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        self._hook_changes = _hook_comparison(early_config)
        self._plugins = early_config.pluginmanager.get_plugins  # type: ignore[assignment]
        self._prepare(early_config)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._collected(items)
        for item in items:
            self._items.record(item)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._report([*self._items.changes(item, before=True), *self._hook_changes()])
        yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._report(self._items.changes(item, before=True))
        yield
        self._report([*self._items.changes(item, before=False), *self._hook_changes(), *self._runner_changes()])

    def changes(self) -> list[str]:
        """What of the session was replaced since it began, and plugins from the agent's sources."""
        return [
            *self._reporter_changes(),
            *self._hook_changes(),
            *(f"pytest.plugin by {path}" for path in _plugin_files(self._plugins()) if path.startswith(self._prefixes)),
        ]


class _ItemChecks:
    """The test items as they were collected."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, type, Any, Any]] = {}

    def record(self, item: pytest.Item) -> None:
        function = _function(item)
        self._known[id(item)] = item, type(item), function, getattr(function, "__code__", None)

    def changes(self, item: pytest.Item, before: bool) -> list[str]:
        """`before` its set-up and its call the item's function has to be the collected one. A plugin that wraps it does
        so for the reference too."""
        _, kind, function, code = self._known.get(id(item), (None, None, None, None))
        if kind is None:
            return ["pytest.item"]
        changed = [
            _blame(f"pytest.item.{name}", own[name])
            for own in [vars(item)]
            for name in _METHODS_OF_ITEMS
            if name in own
        ]
        changed += [
            _blame(f"pytest.session.{name}", own[name])
            for own in [vars(item.session)]
            for name in _METHODS_OF_SESSIONS
            if name in own
        ]
        if type(item) is not kind:
            changed.append("pytest.item.__class__")
        if before and _function(item) is not function:
            changed.append(_blame("pytest.item.obj", _function(item)))
        if getattr(function, "__code__", None) is not code:
            changed.append(_blame("pytest.item.obj", function))
        return changed


def _function(item: pytest.Item) -> Any:
    found = getattr(item, "obj", None)
    return getattr(found, "__func__", found)


def _hook_comparison(config: pytest.Config) -> Callable[[], list[str]]:
    """A function that lists what of the hooks is another than before: implementations that came and are not pytest's
    own, known ones that are gone, stand in another order or call another function."""
    relay, manager, execute = vars(config.hook), config.pluginmanager, vars(config.pluginmanager).get("_inner_hookexec")
    callers, kind = dict(relay), type(config.hook.pytest_runtest_call)
    listed = {name: [*caller._hookimpls] for name, caller in callers.items()}
    functions = {id(one): (one, one.function) for known in listed.values() for one in known}
    blame, of_the_runner, registered = _blame, _is_of_the_runner, manager.is_registered

    def changed() -> list[str]:
        changes = [
            blame(f"pytest.hook.{name}", relay.get(name)) for name in callers if relay.get(name) is not callers[name]
        ]
        if vars(manager).get("_inner_hookexec") is not execute:
            changes.append("pytest.hook")
        for name, caller in relay.items():
            if type(caller) is not kind:
                continue
            now, known = [*caller._hookimpls], listed.setdefault(name, [])
            changes += [
                blame(f"pytest.hook.{name}", one.function)
                for one in now
                if id(one) in functions and functions[id(one)][1] is not one.function
            ]
            for one in now:
                if id(one) not in functions:
                    if of_the_runner(one):
                        functions[id(one)] = one, one.function
                    else:
                        changes.append(blame(f"pytest.hook.{name}", one.function))
            there = {id(one) for one in now}
            if any(id(one) not in there and registered(one.plugin) for one in known):
                changes.append(f"pytest.hook.{name}")
            before = {id(one) for one in known}
            if [one for one in known if id(one) in there] != [one for one in now if id(one) in before]:
                changes.append(f"pytest.hook.{name}")
            listed[name] = [one for one in now if id(one) in functions]
        return changes

    return changed


def _is_of_the_runner(implementation: Any) -> bool:
    """Whether a class or module of pytest itself defines this hook: the one that is there under its name."""
    plugin, function = implementation.plugin, implementation.function
    owner = plugin if inspect.ismodule(plugin) else type(plugin)
    module = owner.__name__ if inspect.ismodule(owner) else owner.__module__
    loaded = sys.modules.get(module)
    if module.partition(".")[0] not in _RUNNER or owner not in (loaded, getattr(loaded, owner.__name__, None)):
        return False
    defined = vars(owner).get(function.__name__)
    plain = getattr(function, "__func__", function)
    file = getattr(getattr(inspect.unwrap(plain), "__code__", None), "co_filename", None)
    return plain is defined and file in _files_of_the_runner()


def _files_of_the_runner() -> set[str]:
    return {
        file
        for name, module in [*sys.modules.items()]
        if name.partition(".")[0] in _RUNNER and isinstance(file := getattr(module, "__file__", None), str)
    }


def _reporter_comparison(reporter: Reporter) -> Callable[[], list[str]]:
    own = dict(vars(reporter))
    methods = {name: (value, value.__code__) for name, value in vars(Reporter).items() if inspect.isfunction(value)}

    def changed() -> list[str]:
        changes = [
            _blame(f"pytest.reporter.{name}", value)
            for name, value in vars(reporter).items()
            if own.get(name) is not value
        ]
        for name, (function, code) in methods.items():
            value = vars(Reporter).get(name)
            if value is not function or function.__code__ is not code:
                changes.append(_blame(f"pytest.Reporter.{name}", value))
        return changes

    return changed


def _blame(name: str, value: object) -> str:
    """The name that was replaced, and the file of the replacement where it has one."""
    function = getattr(value, "__func__", value)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    return f"{name} by {file}" if isinstance(file, str) else name


def _plugin_files(plugins: Sequence[Any]) -> Iterator[str]:
    for plugin in plugins:
        module = plugin if inspect.ismodule(plugin) else sys.modules.get(type(plugin).__module__)
        path = getattr(module, "__file__", None)
        if isinstance(path, str):
            yield path
