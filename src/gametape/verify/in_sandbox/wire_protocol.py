"""The protocol between the test process and the worker: message kinds, operations, kinds of stand-ins.

A request is `(REQUEST, id, operation, fields, releases)`. The worker answers with one of
`(RETURN, id, value, updates, printed)`, `(RAISE, id, exception, updates, printed)` and, when it returns one of the
arguments itself, `(SAME, id, position, updates, printed)`. Before that it may ask any number of times for a callback,
with `(CALLBACK, id, number, args, kwargs)`, which the test process answers with `(RETURN, id, value, updates)` or
`(RAISE, id, exception, updates)`, possibly after requests of its own. Every message carries the id of what it belongs
to, so an answer out of turn is noticed.

`updates` are the arguments that were changed in place: `(position among the request's mutable containers, contents)`,
the containers of the worker's own classes that changed and that the test process knows: `(handle,)`, and containers of
the test's own classes that the worker got during the call: `(object, contents)`.
`printed` is what the code wrote to stdout and stderr, or None. Where the code did more that a test can see (warnings,
log records, files, environment), it has a third part: a dict of effects, see `worker_surroundings`.
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
SET_IN_MODULE: Final = 40  # module, name, value
DELETE_IN_MODULE: Final = 41  # module, name: undoes what was set, where something was
SURROUND: Final = 42  # a dict of what changed around the test: environment, directory, files and so on
RUN_PROGRAM: Final = 43  # arguments, input, environment, directory, seconds: exit status, output, errors
RUN_MODULE: Final = 44  # module, run name
INVOKE: Final = 45  # command, arguments, keywords, and keywords of click's runner: the fields of its result
START: Final = 46  # awaitable: a task of it, and how far it came
CONTINUE: Final = 47  # task, seconds that passed
CANCEL: Final = 48  # task
SETTLE: Final = 49  # number of an awaitable of the test, whether it raised, value or exception
RELOAD: Final = 50  # module
SUPER: Final = 30  # class, object, name, args or None for an attribute, kwargs: what `super(class, object)` has
SUBCLASS: Final = 31  # name, bases, members
PICKLE: Final = 32  # object, protocol
UNPICKLE: Final = 33  # what PICKLE gave

# Kinds of stand-ins: from the worker.
HANDLE: Final = 0  # (object, class) or (object, class, data) where the class derives from a type of `wire_bases`
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
AWAITABLE_OF_TEST: Final = 40  # number
ASYNC_FUNCTION_OF_TEST: Final = 41  # as FUNCTION_OF_TEST
ASYNC_ITERATOR_OF_TEST: Final = 42  # callback of its __anext__
DESCRIPTOR_OF_TEST: Final = 43  # (name of the builtin, functions)
LOGGER: Final = 44  # name, in both directions
OBJECT_OF_TEST: Final = 30  # (callback, description of its class, data or None)
CLASS_OF_TEST: Final = 31  # description
NAMED_OF_TEST: Final = 32  # (callback, module:name) of the standard library

_UNARY = "neg pos abs invert int float complex index round trunc floor ceil"
_BINARY = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor"
_OTHERS = """
    repr str format bytes bool len length_hint hash contains iter next reversed getitem setitem delitem call enter exit
    aenter aexit aiter anext fspath lt le gt ge eq ne missing init
"""
BINARY = frozenset(
    f"__{prefix}{name}__" for name in _BINARY.split() for prefix in (("", "r", "i") if name != "divmod" else ("", "r"))
)
COMPARISONS = frozenset({"__lt__", "__le__", "__gt__", "__ge__", "__ne__"})
SPECIAL_METHODS = (*(f"__{name}__" for name in f"{_UNARY} {_OTHERS}".split()), *sorted(BINARY))
"""Special methods that a handle's class has if the real class has them. Everything else is an attribute."""
