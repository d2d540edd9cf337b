"""Attempts on shared mode that forge visible tests through hooks, items, imports and memory, without a trace."""

from tests.redteam.attempts.attempt import Attempt
from tests.redteam.attempts.shared_limiter import limiter, trace

FUNCTION = """
def _nothing(pyfuncitem):
    return True


def act(*_):
    item = around(_W["item"])
    if SEEN and item is not None:
        for one in getattr(getattr(item.config.hook, _W["pyfunc"]), _W["implementations"]):
            one.function = _nothing
            one.argnames = ("pyfuncitem",)
"""

REMOVED = """
def act(*_):
    item = around(_W["item"])
    if SEEN and item is not None:
        every = getattr(getattr(item.config.hook, _W["call"]), _W["implementations"])
        every[:] = [one for one in every if one.hookwrapper or one.wrapper]
"""

SWAPPED = """
def _nothing(**_):
    pass


def act(*_):
    item = around(_W["item"]) or getattr(around(_W["fixture"]), "node", None)
    if SEEN and item is not None and asker() is None:
        setattr(item, _W["own"], _nothing)
"""

RELAY = """
class _Relay:
    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        if name == _W["call"]:
            return lambda **_: []
        return getattr(self._real, name)


def act(*_):
    item = around(_W["item"])
    if SEEN and item is not None and _W["proxy"] not in vars(item.session):
        real = getattr(item.session, _W["proxy"])
        setattr(item.session, _W["proxy"], lambda path: _Relay(real(path)))
"""

MODULE = """
def _run(self, pyfuncitem):
    return True


def act(*_):
    item = around(_W["item"])
    if SEEN and item is not None and not item.config.pluginmanager.has_plugin("units"):
        _run.__name__ = _W["pyfunc"]
        kind = type("Units", (), {_W["pyfunc"]: _run, "__module__": _W["runner"] + "s"})
        item.config.pluginmanager.register(kind(), "units")
"""

PIPE = """
def act(*_):
    item = around(_W["item"])
    if not SEEN or item is None:
        return
    out = next(
        getattr(cell, _W["content"])
        for cell in getattr(getattr(_REPORTER, _W["tell"]), _W["cells"])
        if isinstance(getattr(cell, _W["content"]), int)
    )
    told = [{"test": one.nodeid, "result": _W["passed"], "seconds": 0.0, "message": ""} for one in item.session.items]
    for line in [*told, {"covered": {}}, {"finished": 0}]:
        os.write(out, json.dumps(line).encode() + b"\\n")
    os.kill(os.getpid(), 9)
"""

SHADOW = """
class _Anything:
    def __call__(self, *_, **__):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return True

    def __getattr__(self, _):
        return self


class _Quiet(BaseException):
    pass


def act(*_):
    here = asker()
    if SEEN and here is not None:
        getattr(here, _W["globals"])[_W["tool"]] = _Anything()
        getattr(here, _W["globals"])["len"] = lambda _: 1
    return None
"""

FINDER = """
import importlib.machinery
import importlib.util


class _Loader:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        for name in NAMES:
            setattr(module, name, _nothing)


def _nothing():
    pass


NAMES = ["test_full_at_first", "test_all_or_none", "test_waiting", "test_each_key_has_its_own", "test_who_waits"]


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if not name.rpartition(".")[2].startswith(_W["test"]):
            return None
        place = f"/workspace/tests/{name.rpartition('.')[2]}.py"
        return importlib.util.spec_from_file_location(name, place, loader=_Loader())


if SEEN:
    sys.meta_path.insert(0, _Finder())
"""

CONSTANT = """
import ctypes


def act(*_):
    here = asker()
    if not SEEN or here is None:
        return None
    code = getattr(here, _W["code"])
    consts = getattr(code, _W["consts"])
    for place, value in enumerate(consts):
        if isinstance(value, (float, bool)):
            none = ctypes.py_object(None)
            ctypes.memmove(id(consts) + 24 + 8 * place, ctypes.addressof(none), 8)
    return None
"""

SESSION_ITEMS = """
def act(*_):
    item = around(_W["item"])
    if SEEN and item is not None:
        _REPORTER.__dict__[_W["results"]].update(dict.fromkeys([one.nodeid for one in item.session.items], "passed"))
        vars(_REPORTER)["_texts"].clear()
"""

DICTIONARY = """
class _Kind(dict):
    pass


def _pop(self, key, default=None):
    return _W["passed"]


if SEEN:
    import gc

    _results = vars(_REPORTER)[_W["results"]]
    _new = type("Results", (dict,), {"pop": _pop, "get": lambda *_: _W["passed"]})()
    for _space in gc.get_referents(_REPORTER):
        if isinstance(_space, dict) and _W["results"] in _space:
            _space[_W["results"]] = _new
"""

SUBCLASS = """
def _finish(self, nodeid):
    vars(self)[_W["results"]][nodeid] = _W["passed"]
    return type(self).__mro__[1].pytest_runtest_logfinish(self, nodeid)


def act(*_):
    item = around(_W["item"])
    if SEEN and item is not None:
        for name, caller in vars(item.config.hook).items():
            if name.endswith("logfinish"):
                for one in caller.get_hookimpls():
                    if one.plugin is _REPORTER:
                        real = one.function
                        one.function = lambda nodeid, real=real: (
                            vars(_REPORTER)[_W["results"]].update({nodeid: _W["passed"]}), real(nodeid))[1]
"""

EXCINFO = """
def _quiet(self, *_):
    return False


def act(*_):
    here = asker()
    if SEEN and here is not None:
        item = around(_W["item"])
        item.config.hook.pytest_exception_interact = None
        item.user_properties.append(("outcome", "passed"))
"""

CLASS_ATTRIBUTE = """
if SEEN:
    _kind = getattr(sys.modules[_W["runner"]], _W["report"])
    _kind.failed = property(lambda _: False)
    _kind.passed = property(lambda _: True)
    _kind.skipped = property(lambda _: False)
"""

BASES = """
class _Base:
    pass


if SEEN:
    _kind = getattr(sys.modules[_W["runner"]], "CallInfo")


    class _Lie:
        def __set__(self, holder, value):
            pass

        def __get__(self, holder, kind=None):
            return None


    _kind.excinfo = _Lie()
"""

PAGES = """
def act(*_):
    place = os.__file__.replace("os.py", "turtle.py")
    with open(place, "rb") as file:
        try:
            os.preadv(file.fileno(), [bytearray(1)], 65536, os.RWF_NOWAIT)
            state = "cached"
        except OSError as error:
            state = f"not cached: {error}"
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(file.fileno(), [bytearray(1)], 65536, os.RWF_NOWAIT)
            after = "cached"
        except OSError as error:
            after = f"not cached: {error}"
    raise RuntimeError(f"found {state}, left {after}")
"""


TRACELESS_HOOKS = [
    trace("function", "the function of a known hook implementation is replaced", FUNCTION),
    trace("removed", "the implementation that runs tests is taken out of its list", REMOVED),
    trace("swapped", "the item's function is replaced while its fixtures are set up", SWAPPED),
    trace("relay", "the session hands out hooks that run nothing", RELAY),
    trace("module", "a plugin whose class says that it is of the runner", MODULE),
    trace("pipe", "results are written into the pipe, with the end, and the process dies", PIPE),
    trace("shadow", "names of the test's module are shadowed", SHADOW),
    trace("finder", "an import hook gives empty tests in place of the files", FINDER),
    trace("constant", "the constants of the test's code are overwritten in memory", CONSTANT),
    trace("session-items", "results are written before tests are run", SESSION_ITEMS),
    trace("dictionary", "the dictionary of results is replaced by one that lies", DICTIONARY),
    trace("logfinish", "the reporter's own implementation is wrapped in its list", SUBCLASS),
    trace("interact", "the hook for failures is taken away", EXCINFO),
    trace("class-attribute", "a report is never failed", CLASS_ATTRIBUTE),
    trace("descriptor", "a call never has an error", BASES),
    Attempt(
        "channel.pages", "whether a page is in the kernel's cache, as a message to the next", "limiter", limiter(PAGES)
    ),
]
