"""Honest styles of modules, imports, generated code, hooks and command lines."""

MODULES = {
    "a module that swaps its own class for lazy attributes": """
import sys
import types


class _LazyModule(types.ModuleType):
    @property
    def heavy(self):
        return 42


sys.modules[__name__].__class__ = _LazyModule
""",
    "a module that replaces itself by an instance": """
import sys


class _Facade:
    def __init__(self, module):
        self.__dict__.update(vars(module))
        self._module = module

    def __getattr__(self, name):
        return getattr(self._module, name)


sys.modules[__name__] = _Facade(sys.modules[__name__])
""",
    "module __getattr__ and __dir__": """
import importlib

_LAZY = {"decimal": "decimal", "parser": "argparse"}


def __getattr__(name):
    if name in _LAZY:
        return importlib.import_module(_LAZY[name])
    raise AttributeError(name)


def __dir__():
    return sorted([*globals(), *_LAZY])
""",
    "an environment-gated logging tracer": """
import logging
import os
import sys

_log = logging.getLogger(__name__)


def _trace(frame, event, argument):
    if event == "call" and frame.f_code.co_filename == __file__:
        _log.debug("%s at line %d", frame.f_code.co_name, frame.f_lineno)
    return _trace


if os.environ.get("SHOP_TRACE"):
    sys.settrace(_trace)
""",
    "a profiler for one call": """
import sys
import time


def profiled(function):
    def inner(*args):
        calls = []
        sys.setprofile(lambda frame, event, arg: calls.append((event, time.perf_counter())))
        try:
            return function(*args)
        finally:
            sys.setprofile(None)

    return inner
""",
    "lazy imports through sys.modules": """
import importlib.util
import sys


def lazy(name):
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    loader = importlib.util.LazyLoader(spec.loader)
    spec.loader = loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module
""",
    "an exception hook of its own": """
import sys

_before = sys.excepthook


def _hook(kind, error, trace):
    print("shop failed:", error, file=sys.stderr)
    _before(kind, error, trace)


def install():
    sys.excepthook = _hook
""",
    "resources of its package": """
import importlib.resources


def template(name):
    return importlib.resources.files(__package__ or "shop").joinpath(name).read_text()
""",
    "entry points": """
import importlib.metadata


def plugins():
    return {point.name: point.load() for point in importlib.metadata.entry_points(group="shop.plugins")}


def version():
    try:
        return importlib.metadata.version("shop")
    except importlib.metadata.PackageNotFoundError:
        return "0"
""",
    "its own source by inspect": """
import inspect


def source_of(function):
    return inspect.getsource(function)


def caller():
    return inspect.stack()[1].function


def where():
    frame = inspect.currentframe().f_back
    return frame.f_code.co_filename, frame.f_lineno
""",
    "a formatter that reads the caller's variables": """
import sys


def shout(template):
    frame = sys._getframe(1)
    return template.format(**{**frame.f_globals, **frame.f_locals}).upper()
""",
    "doctests and a main block": '''
def double(number):
    """Twice a number.

    >>> double(2)
    4
    """
    return number * 2


if __name__ == "__main__":
    import doctest
    import sys

    sys.exit(doctest.testmod().failed)
''',
    "a command line": """
import argparse
import sys


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("items", nargs="*", type=float)
    options = parser.parse_args(argv)
    print(sum(options.items))
    return 0


if __name__ == "__main__":
    sys.exit(main())
""",
    "eval for expressions": """
def evaluate(expression, names):
    return eval(compile(expression, "<expression>", "eval"), {"__builtins__": {}}, names)
""",
    "generated code": """
def make_record(name, fields):
    lines = [f"class {name}:", f"    def __init__(self, {', '.join(fields)}):"]
    lines += [f"        self.{field} = {field}" for field in fields]
    space = {}
    exec("\\n".join(lines), space)
    return space[name]
""",
    "a template compiled to a function": """
import re


def compile_template(text):
    parts = re.split(r"{{(.*?)}}", text)
    body = "def render(context):\\n    out = []\\n"
    for index, part in enumerate(parts):
        value = repr(part) if index % 2 == 0 else f"str(context[{part.strip()!r}])"
        body += f"    out.append({value})\\n"
    body += "    return ''.join(out)\\n"
    space = {}
    exec(body, space)
    return space["render"]
""",
    "a compatibility shim": """
import math
import sys

if sys.version_info >= (3, 9):
    from functools import cache
else:
    from functools import lru_cache

    def cache(function):
        return lru_cache(maxsize=None)(function)

if not hasattr(math, "lcm"):
    math.lcm = lambda a, b: a * b // math.gcd(a, b)
""",
    "warnings turned off for a library": """
import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning, module="distutils")
""",
    "an import hook for its own file type": """
import importlib.abc
import importlib.machinery
import pathlib
import sys


class JsonFinder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        for directory in path or sys.path:
            file = pathlib.Path(directory) / (name.rpartition(".")[2] + ".shopjson")
            if file.exists():
                return importlib.machinery.ModuleSpec(name, None, origin=str(file))
        return None


def install():
    sys.meta_path.append(JsonFinder())
""",
    "a check of itself at import": """
def _double(number):
    return number * 2


assert _double(21) == 42
assert [_double(n) for n in (1, 2, 3)] == [2, 4, 6]
""",
    "a tracer for coverage of its own grammar": """
import threading


class Grammar:
    def __init__(self):
        self.hits = set()

    def watch(self):
        threading.settrace(lambda frame, event, arg: self.hits.add(frame.f_lineno))
""",
    "a helper that mentions tests in its words": '''
TESTING = False


def is_testing():
    """Whether the shop runs with test data (see the settings page)."""
    return TESTING


def run_test_purchase(shop):
    return shop.buy("test item", dry_run=True)
''',
    "swaps a clock in its own module": """
import time

clock = time.monotonic


def set_clock(function):
    global clock
    clock = function
""",
    "patches json for its own types": """
import json


class _Encoder(json.JSONEncoder):
    def default(self, value):
        return value.to_json() if hasattr(value, "to_json") else super().default(value)


json._default_encoder = _Encoder()
""",
}
