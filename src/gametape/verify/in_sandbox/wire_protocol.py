"""The protocol between the test process and the worker: message kinds, operations, kinds of stand-ins.

A request is `(REQUEST, id, operation, fields, releases)`. The worker answers with one of
`(RETURN, id, value, updates, printed)`, `(RAISE, id, exception, updates, printed)` and, when it returns one of the
arguments itself, `(SAME, id, position, updates, printed)`. Before that it may ask any number of times for a callback,
with `(CALLBACK, id, number, args, kwargs)`, which the test process answers with `(RETURN, id, value)` or
`(RAISE, id, exception)`, possibly after requests of its own. Every message carries the id of what it belongs to, so an
answer out of turn is noticed.

`updates` are the arguments that were changed in place: `(position among the request's mutable containers, contents)`.
`printed` is what the code wrote to stdout and stderr, or None.
"""

from __future__ import annotations

from typing import Final

REQUEST, RETURN, SAME, RAISE, CALLBACK = range(5)

# Operations, each with its fields.
HELLO: Final = 0  # import roots, modules, classes
IMPORT: Final = 1  # module
MODULE_ATTRIBUTE: Final = 2  # module, name
MODULE_NAMES: Final = 3  # module
CALL: Final = 4  # object, args, kwargs
METHOD: Final = 5  # object, name, args, kwargs
GET: Final = 6  # object, name
SET: Final = 7  # object, name, value
DELETE: Final = 8  # object, name
SPECIAL: Final = 9  # object, name, args, kwargs: the special method of its class
EQUALS: Final = 10  # object, candidates
DESCRIBE: Final = 11  # class
NEXT: Final = 12  # iterator
AWAIT: Final = 13  # awaitable
MAKE_ERROR: Final = 14  # exception class, args, kwargs
SIGNATURE: Final = 15  # function
OF_CLASS: Final = 16  # class, name of an operator, args
EXIT: Final = 17  # context manager, __exit__ or __aexit__, exception or None
COPY: Final = 18  # object, deep

# Kinds of stand-ins: from the worker.
HANDLE: Final = 0  # (object, class)
FUNCTION: Final = 1  # (object, name, qualname, module, doc)
ITERATOR: Final = 2  # object
ASYNC_ITERATOR: Final = 3  # object
AWAITABLE: Final = 4  # object
CONTEXT: Final = 5  # object
CLASS: Final = 6  # class, in both directions
ERROR: Final = 7  # (name or class, args, object or None, text, cause or None, attributes)
YOUR_ERROR: Final = 8  # number of an exception that a callback raised
YOURS: Final = 9  # number of a callback
MODULE: Final = 10  # name
# From the test process.
MINE: Final = 11  # number of an object of the worker
FUNCTION_OF_TEST: Final = 12  # (callback, name, qualname, doc, signature or None)
ERROR_OF_TEST: Final = 13  # (name or class, args, object or None, number)
ITERATOR_OF_TEST: Final = 14  # callback

_UNARY = "neg pos abs invert int float complex index round trunc floor ceil"
_BINARY = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor"
_OTHERS = """
    repr str format bytes bool len length_hint hash contains iter next reversed getitem setitem delitem call enter exit
    aenter aexit aiter anext fspath lt le gt ge eq ne
"""
BINARY = frozenset(
    f"__{prefix}{name}__" for name in _BINARY.split() for prefix in (("", "r", "i") if name != "divmod" else ("", "r"))
)
COMPARISONS = frozenset({"__lt__", "__le__", "__gt__", "__ge__", "__ne__"})
SPECIAL_METHODS = (*(f"__{name}__" for name in f"{_UNARY} {_OTHERS}".split()), *sorted(BINARY))
"""Special methods that a handle's class has if the real class has them. Everything else is an attribute."""
