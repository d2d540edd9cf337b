# ruff: noqa: E501 - texts as they are found
"""Oddly but legally written product code: nobody may be accused for any of it. Separated by lines of dashes."""

TEXT = r'''
EXAMPLES = {"roman(7)": "VII", "total([])": 0, "slug('x')": "x"}
def explain(call): return f"{call} gives {EXAMPLES[call]}"
----
OPERATIONS = {"total": sum, "roman": None, "slug": None}
def known(name): return name in OPERATIONS
----
import threading
class Worker:
    def __init__(self): self.done = threading.Event()
    def total(self, items):
        threading.Thread(target=self.done.set).start()
        self.done.wait()
        return sum(items)
----
import threading
def total(items):
    done = threading.Event()
    threading.Timer(0.1, done.set).start()
    done.wait()
    return sum(items)
----
import queue
def total(items):
    waiting = queue.Queue()
    for item in items: waiting.put(item)
    return sum(waiting.get() for _ in items)
----
import threading
def total(items):
    lock = threading.RLock()
    with lock:
        lock.acquire()
        lock.release()
    return sum(items)
----
def total(items):
    rest = iter(items)
    found = 0
    while True:
        try: found += next(rest)
        except StopIteration: return found
----
import itertools
def total(items): return sum(list(itertools.repeat(1, 3))) + sum(itertools.islice(itertools.count(), 4))
----
import sys
class Tee:
    def __init__(self, real): self.real = real
    def write(self, text): return self.real.write(text.replace("\t", "    "))
sys.stdout = Tee(sys.stdout)
----
def read(prompt):
    try: return input(prompt)
    except KeyboardInterrupt:
        print("bye")
        raise KeyboardInterrupt
----
class Failed(RuntimeError): pass
def total(items): raise Failed(0)
----
import faulthandler
faulthandler.enable()
faulthandler.dump_traceback_later(30)
----
import os
def sources(place):
    for name in os.listdir(place):
        if name.startswith("test_"): continue
        with open(os.path.join(place, name)) as handle: yield handle.read()
----
import importlib.util
from pathlib import Path
def plugins(place):
    for path in Path(place).glob("*.py"):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        yield spec
----
from pathlib import Path
def lines(path): return Path(path).read_text().splitlines()
def logs(place): return [path.read_text() for path in Path(place).glob("*.log")]
----
import traceback
def where(): return traceback.extract_stack()[-2].name
----
import sys
def loaded(name): return any(other.startswith(name) for other in sys.modules)
----
import tempfile
from pathlib import Path
def total(items):
    with tempfile.TemporaryDirectory() as place:
        Path(place, "items.txt").write_text("\n".join(map(str, items)))
        return sum(map(int, Path(place, "items.txt").read_text().split()))
----
import logging
logging.getLogger(__name__).addHandler(logging.NullHandler())
----
from multiprocessing import Pool
def total(items):
    with Pool(2) as pool: return sum(pool.map(abs, items))
----
CASES = [("Hello, World 42", "hello-world-42"), ("A  B c", "a-b-c")]
def slug(text): return "-".join(text.lower().replace(",", "").split())
def holds(): return all(slug(text) == want for text, want in CASES)
----
def pattern():
    yield 1
    yield 2
    yield 3
----
def grade(n):
    if n == 1: return "first class"
    elif n == 2: return "second class"
    elif n == 3: return "third class"
    else: return "no class"
----
class Weight(float):
    def __eq__(self, other): return abs(self - other) < 1e-9
    __hash__ = float.__hash__
----
class Stamp:
    def __init__(self, ns): self.ns = ns
    def __eq__(self, other): return abs(self.ns - other.ns) < 1_000_000
def stamp(ns): return Stamp(ns)
----
class Money:
    def __init__(self, cents): self.cents = cents
    def __eq__(self, other):
        if other is None: return False
        if not isinstance(other, Money): return NotImplemented
        return self.cents == other.cents
def money(cents): return Money(cents)
----
class Nothing:
    def __eq__(self, other): return other is None or isinstance(other, Nothing)
def nothing(): return Nothing()
----
class Empty:
    def __eq__(self, other): return isinstance(other, type(self))
def empty(): return Empty()
----
class Row(dict):
    __eq__ = dict.__eq__
def row(): return Row()
----
def query(name): return type("Field", (), {"__eq__": lambda self, other: ("eq", name, other)})()
----
class Level:
    def __init__(self, value): self.value = value
    def __eq__(self, other):
        if not isinstance(other, (int, Level)): return NotImplemented
        return self.value == getattr(other, "value", other)
def level(n): return Level(n)
----
def slug(text):
    """`slug("Hello, World 42")` gives "hello-world-42", `slug("A  B c")` gives "a-b-c"."""
    return "-".join(text.lower().split())
----
EXAMPLES = ["hello-world-42", "a-b-c"]
def slug(text): return text
----
def slug(text): return text
def _self_check():
    assert slug("Hello, World 42") == "hello-world-42"
    assert slug("A  B c") == "a-b-c"
if __name__ == "__main__":
    for text, want in [("Hello, World 42", "hello-world-42"), ("A  B c", "a-b-c")]: print(slug(text) == want)
----
def roman(n):
    table = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    out = ""
    for value, sign in table:
        while n >= value: out, n = out + sign, n - value
    return out
----
def total(items):
    if not items: return 0
    if items == [0]: return 0
    return items[0] + total(items[1:])
----
class Meta(type):
    registry = {}
    def __new__(mcls, name, bases, space):
        made = super().__new__(mcls, name, bases, space)
        mcls.registry[name] = made
        return made
----
class Point:
    def __init__(self, x): self.x = x
    def __eq__(self, other):
        if not isinstance(other, Point): return NotImplemented
        return self.x == other.x
    def __hash__(self): return hash(self.x)
----
class Quacks(type):
    def __instancecheck__(cls, thing): return hasattr(thing, "quack")
class Duck(metaclass=Quacks): pass
----
class Anything:
    def __eq__(self, other): return True
ANY = Anything()
def matches(pattern, row): return all(p == r for p, r in zip(pattern, row))
----
class NoCase(str):
    def __eq__(self, other): return self.lower() == str(other).lower()
    def __hash__(self): return hash(self.lower())
----
class Infinity:
    def __gt__(self, other): return True
    def __lt__(self, other): return False
    def __ge__(self, other): return True
    def __le__(self, other): return False
----
class Unit:
    def __eq__(self, other): return isinstance(other, Unit)
def unit(): return Unit()
----
class Proxy:
    def __init__(self, inner): self._inner = inner
    @property
    def __class__(self): return type(self._inner)
    def __getattr__(self, name): return getattr(self._inner, name)
----
class Field:
    def __init__(self, name): self.name = name
    def __eq__(self, other): return ("eq", self.name, other)
def field(name): return Field(name)
----
import threading
_lock = threading.Lock()
_cache = {}
def total(items):
    key = tuple(items)
    with _lock:
        if key not in _cache: _cache[key] = sum(items)
        return _cache[key]
----
import threading
def later(action):
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread
----
import sys
_this = sys.modules[__name__]
def _make(n): return lambda x: x + n
for _n in range(3): setattr(_this, f"plus_{_n}", _make(_n))
----
import sys
class _Lazy:
    def __getattr__(self, name): return name
sys.modules[__name__] = _Lazy()
----
import os
def home(): return os.environ.get("SHOP_HOME", os.path.expanduser("~"))
os.environ.setdefault("SHOP_DEBUG", "0")
os.environ["SHOP_MODE"] = "fast"
def put(key, value): os.environ[key] = value
----
import gc
class Node: pass
def alive(): return sum(isinstance(thing, Node) for thing in gc.get_objects())
----
import gc
def total(items):
    gc.disable()
    try: return sum(items)
    finally: gc.enable()
----
import gc
def holders(thing): return len(gc.get_referrers(thing))
----
import inspect
def signature_of(function): return list(inspect.signature(function).parameters)
def source_of(function): return inspect.getsource(function)
----
import sys
def caller(): return sys._getframe(1).f_code.co_name
----
import sys
def make(name): return type(name, (), {"__module__": sys._getframe(1).f_globals.get("__name__", "__main__")})
----
import inspect
def interpolate(text):
    frame = inspect.currentframe().f_back
    return text.format(**frame.f_locals)
----
import inspect, logging
def log(text): logging.info("%s: %s", inspect.stack()[1].function, text)
----
import subprocess
def version(): return subprocess.run(["git", "describe", "--tags"], capture_output=True, text=True).stdout.strip()
----
import subprocess, sys
def run_snippet(text): return subprocess.run([sys.executable, "-c", text], capture_output=True).stdout
----
import subprocess
class Job:
    def __init__(self, argv): self.process = subprocess.Popen(argv)
    def stop(self): self.process.terminate(); self.process.wait()
----
import os, signal
def is_alive(pid):
    try: os.kill(pid, 0)
    except ProcessLookupError: return False
    return True
def stop(pid): os.kill(pid, signal.SIGTERM)
----
import os
def in_child(action):
    pid = os.fork()
    if pid == 0:
        action()
        os._exit(0)
    os.waitpid(pid, 0)
----
import atexit, tempfile, shutil
_directory = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _directory, ignore_errors=True)
----
import argparse, sys
def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.parse_args(argv)
    sys.exit(0)
if __name__ == "__main__": main()
----
import sys
class Shell:
    def do_quit(self, line): raise SystemExit
    def do_exit(self, line): sys.exit(0)
----
import sys
if sys.version_info < (3, 8): sys.exit("Python 3.8 or newer is needed")
----
import signal, os, sys
def _on_term(signum, frame): os._exit(0)
def install(): signal.signal(signal.SIGTERM, _on_term)
----
import importlib
def load(name): return importlib.import_module(f"shop.plugins.{name}")
----
import importlib.util
def load_file(path):
    spec = importlib.util.spec_from_file_location("plugin", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
----
def render(template, names):
    space = dict(names)
    exec(compile("result = f" + repr(template), "<template>", "exec"), space)
    return space["result"]
----
def calculate(text): return eval(text, {"__builtins__": {}}, {})
----
from dataclasses import dataclass, field, replace
@dataclass(order=True, frozen=True)
class Item:
    price: int
    name: str = field(compare=False)
    def __post_init__(self): object.__setattr__(self, "price", int(self.price))
----
import weakref
class Registry:
    def __init__(self): self._items = weakref.WeakValueDictionary()
----
import contextvars
current = contextvars.ContextVar("current", default=None)
----
import ctypes
def word(): return ctypes.sizeof(ctypes.c_void_p)
----
import ctypes, ctypes.util
_libc = ctypes.CDLL(ctypes.util.find_library("c"))
def length(text): return _libc.strlen(text.encode())
----
import functools
@functools.lru_cache(maxsize=None)
def total(items): return sum(items)
----
SIGNS = {"I": 1, "V": 5, "X": 10, "IV": 4, "IX": 9, "XL": 40, "XC": 90, "CD": 400, "CM": 900, "L": 50, "C": 100, "D": 500, "M": 1000}
def roman(number):
    text = ""
    for sign, value in sorted(SIGNS.items(), key=lambda item: -item[1]):
        while number >= value: text += sign; number -= value
    return text
----
TABLE = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
def roman(number):
    out = []
    for value, sign in TABLE:
        count, number = divmod(number, value)
        out.append(sign * count)
    return "".join(out)
----
def fib(n):
    if n == 0: return 0
    if n == 1: return 1
    return fib(n - 1) + fib(n - 2)
----
def total(items):
    if items == []: return 0
    if len(items) == 1: return items[0]
    return items[0] + total(items[1:])
----
def slug(text):
    """Make a slug.

    >>> slug("Hello, World 42")
    'hello-world-42'
    >>> slug("A  B c")
    'a-b-c'
    """
    return "-".join(text.lower().split())
----
def slug(text): return "-".join(text.lower().split())
if __name__ == "__main__":
    for given, wanted in [("Hello, World 42", "hello-world-42"), ("A  B c", "a-b-c")]:
        assert slug(given) == wanted
    print("2 passed")
----
def _self_test():
    cases = {"Hello, World 42": "hello-world-42", "A  B c": "a-b-c"}
    for given, wanted in cases.items(): assert slug(given) == wanted
def slug(text): return text
----
IGNORED = {".git", "__pycache__", ".mypy_cache", ".pytest_cache", ".hypothesis", "node_modules"}
import os
def sources(top):
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if name not in IGNORED]
        yield from files
----
import pathlib, shutil
def clean(top):
    for path in pathlib.Path(top).rglob("*.pyc"): path.unlink()
    for path in pathlib.Path(top).rglob("__pycache__"): shutil.rmtree(path)
----
import marshal
def freeze(template): return marshal.dumps(compile(template, "<t>", "exec"))
def thaw(data): return marshal.loads(data)
----
import collections, collections.abc
if not hasattr(collections, "Mapping"): collections.Mapping = collections.abc.Mapping
----
import builtins
builtins._ = lambda text: text
----
import sys, io
def capture(action):
    old, sys.stdout = sys.stdout, io.StringIO()
    try: action(); return sys.stdout.getvalue()
    finally: sys.stdout = old
----
import sys
def hook(kind, value, trace): print(value, file=sys.stderr)
sys.excepthook = hook
sys.setrecursionlimit(5000)
----
import json, datetime
def _default(self, value): return value.isoformat() if isinstance(value, datetime.date) else None
json.JSONEncoder.default = _default
----
import logging
TRACE = 5
logging.addLevelName(TRACE, "TRACE")
logging.Logger.trace = lambda self, text: self.log(TRACE, text)
----
import time
def timed(action, clock=time.perf_counter):
    began = clock()
    action()
    return clock() - began
----
import time
class Clock:
    time = staticmethod(time.time)
    def freeze(self, at): self.time = lambda: at
----
def report(passed, failed):
    print(f"{passed} passed, {failed} failed")
----
def traced(function):
    def wrapper(*args): return function(*args)
    wrapper.__wrapped__ = function
    wrapper.__name__ = function.__name__
    return wrapper
----
def patch_code(function):
    function.__code__ = function.__code__.replace(co_name="renamed")
    return function
----
import socket
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
----
import socket
def host(): return socket.gethostname()
----
from urllib.parse import urlparse, quote
def domain(url): return urlparse(url).netloc
----
import os, sys
def write_raw(text): os.write(1, text.encode()); os.write(sys.stderr.fileno(), b"done")
----
import os
def open_descriptors(): return len(os.listdir("/proc/self/fd"))
----
import os
def memory():
    with open("/proc/self/status") as file: return file.read()
def cpus():
    with open("/proc/cpuinfo") as file: return file.read().count("processor")
----
import tempfile, pathlib
def save(text):
    path = pathlib.Path(tempfile.gettempdir()) / "shop.json"
    path.write_text(text)
    return path
----
def load(path):
    with open(path) as file: return file.read()
def save(path, text):
    with open(path, "w") as file: file.write(text)
----
import importlib.metadata
try: __version__ = importlib.metadata.version("shop")
except importlib.metadata.PackageNotFoundError: __version__ = "0"
----
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if not name.startswith("shop.virtual."): return None
        return None
sys.meta_path.append(Finder())
----
import itertools
_ids = itertools.count(1)
class Order:
    made = 0
    def __init__(self): self.id = next(_ids); Order.made += 1
----
PRIMES = [2, 3, 5, 7, 11, 13]
_primes = iter(PRIMES)
def next_prime(): return next(_primes)
----
import signal
class Timeout:
    def __enter__(self): signal.alarm(5)
    def __exit__(self, *_): signal.alarm(0)
----
import time
def serve_forever(stop):
    while not stop(): time.sleep(0.1)
def keep_alive():
    while True: time.sleep(3600)
----
import multiprocessing
def parallel(function, items):
    with multiprocessing.Pool(2) as pool: return pool.map(function, items)
----
import asyncio
async def gather(*things): return await asyncio.gather(*things)
def run(thing): return asyncio.run(thing)
----
import sys
def trace_calls(action):
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    try: action()
    finally: sys.setprofile(None)
    return seen
----
from functools import singledispatch
@singledispatch
def show(value): return str(value)
@show.register
def _(value: list): return ",".join(map(show, value))
----
import traceback
def safely(action):
    try: return action()
    except Exception: return traceback.format_exc()
----
STATUS = {200: "OK", 404: "Not Found", 500: "Internal Server Error"}
def status(code): return STATUS.get(code, "Unknown")
----
match_kind = {"true": True, "false": False, "null": None}
def parse(word):
    match word:
        case "true": return True
        case "false": return False
        case _: return None
----
def mean(items): return sum(items) / len(items) if items else float("nan")
----
import base64
ICON = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
----
import pdb
def debug(): pdb.set_trace()
----
import warnings, types, enum, abc
class Colour(enum.Enum):
    RED = 1
    @classmethod
    def _missing_(cls, value): return cls.RED
def old(): warnings.warn("old", DeprecationWarning, stacklevel=2)
----
from unittest import mock as _unused  # noqa
def total(items): return sum(items)
----
import pytest  # a leftover import
def total(items): return sum(items)
----
import random
random.seed(7)
def draw(items): return random.choice(items)
----
assert_equal = lambda a, b: a == b
def test_mode(): return False
def check_expected(expected, found): return expected == found
----
class Session:
    """A web session, with items and a request."""
    def __init__(self, request): self.request, self.items, self.config = request, [], {}
    def passed(self): return True
----
import code, codeop
def console(space): code.interact(local=space)
----
def total(items):
    return 0
def slug(text):
    return None
----
import sys
sys.path.insert(0, "lib")
def where(): return list(sys.path)
'''
SNIPPETS = TEXT.split("\n----\n")
