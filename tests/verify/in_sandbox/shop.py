"""Small modules of many kinds, for a worker to serve."""

import importlib
from typing import Any

CODE = {
    "shop/__init__.py": '"""A shop."""\nfrom .goods import Basket\nVERSION = "1.2"\n',
    "shop/goods.py": """
        import collections, dataclasses, enum, functools

        LIMITS = {"a": [1, 2]}
        calls = 0

        class Colour(enum.Enum):
            RED = 1
            BLUE = 2

        class Number(enum.IntEnum):
            ONE = 1

        @dataclasses.dataclass(frozen=True, order=True)
        class Price:
            amount: int
            currency: str = "EUR"

            def __add__(self, other):
                if not isinstance(other, Price):
                    return NotImplemented
                return Price(self.amount + other.amount, self.currency)

            def __radd__(self, other):
                return self if other == 0 else NotImplemented

            @classmethod
            def parse(cls, text):
                amount, currency = text.split()
                return cls(int(amount), currency)

            @property
            def doubled(self):
                return self.amount * 2

        class Basket:
            limit = 3

            def __init__(self, items=()):
                self.items = list(items)
                self.closed = False

            def __len__(self): return len(self.items)
            def __iter__(self): return iter(self.items)
            def __contains__(self, item): return item in self.items
            def __getitem__(self, key): return self.items[key]
            def __setitem__(self, key, value): self.items[key] = value
            def __delitem__(self, key): del self.items[key]
            def __bool__(self): return bool(self.items)
            def __call__(self, item): self.items.append(item); return self
            def __str__(self): return "+".join(map(str, self.items))
            def __format__(self, spec): return f"{spec}:{str(self)}"
            def __enter__(self): return self
            def __exit__(self, *error): self.closed = True
            def __eq__(self, other):
                return list(self) == list(other) if hasattr(other, "__iter__") else NotImplemented
            def add(self, *items, first=None):
                self.items += items
                return self
            def total(self, key=lambda item: item): return sum(map(key, self.items))

        class BigBasket(Basket):
            limit = 30

        class Secret:
            pass

        def secret(): return [Secret()]
        def colour(): return Colour.RED
        def is_red(colour): return colour is Colour.RED
        def count(text): return collections.Counter(text)
        def one(): return Number.ONE
        def touch():
            global calls
            calls += 1

        @functools.lru_cache
        def square(x): return x * x
    """,
    "tools.py": '''
        import asyncio, contextlib, functools, json, sys, threading, concurrent.futures

        class ParseError(ValueError):
            """Bad text."""
            code = 7
            def __init__(self, message, line=0):
                super().__init__(message, line)
                self.line = line
            def __str__(self):
                return f"{self.args[0]} at {self.line}"
            def where(self, prefix):
                return f"{prefix}{self.line}"

        class DeepError(ParseError): pass
        class MissingKey(KeyError, LookupError): pass
        class Quit(BaseException): pass
        class FileTrouble(OSError): pass

        def identity(x): return x
        def fail(name, *args):
            raise {"parse": ParseError, "deep": DeepError, "key": MissingKey, "exit": SystemExit, "quit": Quit,
                   "interrupt": KeyboardInterrupt, "value": ValueError, "file": FileTrouble, "os": FileNotFoundError,
                   "unicode": UnicodeDecodeError, "stop": StopIteration}[name](*args)
        def fail_from():
            try:
                {}["x"]
            except KeyError as error:
                raise ParseError("no x", 3) from error
        def load(text): return json.loads(text)
        def sort(rows):
            rows.sort()
        def fill(data, deep):
            data["new"] = {1}; deep[0][1].add(5); deep[0][2].extend(b"yz"); deep.append([len(deep)])
            return deep
        def spoil(rows):
            rows.append(object())
        def spoil_and_fail(rows):
            rows.append(1); raise ValueError("late")
        def apply(function, *args, **kwargs): return function(*args, **kwargs)
        def keyed(items, key): return sorted(items, key=key)
        def twice(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs) * 2
            return wrapper
        def memoize(function):
            cache = {}
            @functools.wraps(function)
            def wrapper(n):
                if n not in cache:
                    cache[n] = function(n)
                return cache[n]
            return wrapper
        def retry(function, times, errors=(Exception,)):
            for left in range(times, 0, -1):
                try:
                    return function()
                except errors:
                    if left == 1:
                        raise
        def swallow(function):
            try:
                function()
            except BaseException as error:
                return type(error).__name__
        def in_threads(function, items):
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                return list(pool.map(function, items))
        def total(numbers): return sum(numbers)
        def first(numbers): return next(iter(numbers))
        def count_up(n=0):
            while True:
                got = yield n
                n = n + 1 if got is None else got
        def views(): return {"a": 1}.keys()
        def chain(xs): return map(str, xs)
        async def later(x):
            await asyncio.sleep(0)
            return x + 1
        async def stream(n):
            for i in range(n):
                yield i
        @contextlib.contextmanager
        def tagged(log):
            log.append("in")
            try:
                yield len(log)
            finally:
                log.append("out")
        @contextlib.contextmanager
        def forgiving(kind):
            with contextlib.suppress(kind):
                yield
        def say(text):
            print(text); print("oh", file=sys.stderr)
        def shout(): print("x" * 3_000_000)
        def deep():
            return deep()
        def low_limit():
            sys.setrecursionlimit(60)
            return "ok"
        def add(a: int, b=2, *, c=(1, 2)): return a + b
    ''',
    "stars.py": """
        __all__ = ["helper", "len", "math", "pytest_configure"]
        def helper(): return 1
        len = math = pytest_configure = helper
    """,
    "broken.py": "import nothing_of_this_name\n",
    "wrong.py": "def (:\n",
    "rude.py": "raise SystemExit(0)\n",
}


CLASSES = ["shop.goods:Basket", "shop.goods:Price", "shop.goods:Colour"]


def load(name: str) -> Any:
    return importlib.import_module(name)
