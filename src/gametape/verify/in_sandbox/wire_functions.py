"""The types that count as functions on both sides, and a function's signature as plain data."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from typing import Any

from .wire import Unsendable, encode

Parameter = tuple[str, int, bool, Any]
"""Name, kind, whether there is a default, and the default where it is plain data (else None)."""

FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    functools.partial,
    operator.attrgetter,
    operator.itemgetter,
    operator.methodcaller,
    type(functools.lru_cache(lambda: None)),
    type(functools.singledispatch(lambda _: None)),
)
_KINDS = {
    int(kind): kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
}


def signature_fields(function: Any) -> list[Parameter] | None:
    """A signature as plain data; None where the function has none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    fields = []
    for parameter in parameters:
        default = None
        if parameter.default is not parameter.empty:
            try:
                encode(parameter.default)
                default = parameter.default
            except Unsendable:
                default = None
        fields.append((parameter.name, int(parameter.kind), parameter.default is not parameter.empty, default))
    return fields


def build_signature(fields: list[Parameter]) -> inspect.Signature:
    """The signature from its fields. Raises ValueError or TypeError for invalid fields."""
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(name, _KINDS[kind], default=default if has_default else empty)
            for name, kind, has_default, default in fields
        ]
    )
