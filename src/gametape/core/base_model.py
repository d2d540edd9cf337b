"""The two base models: `StrictModel` refuses unknown fields, `ExtensibleModel` keeps them.

Neither coerces values: "1" is not 1, and true is not 1. The module also has the number types that both use.
"""

import math
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError


class StrictModel(BaseModel):
    """Data that only we write: an unknown field is a mistake and is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class ExtensibleModel(BaseModel):
    """Data that others write too: unknown fields survive a round trip.

    `model_dump()` gives back what was read: unknown fields, the order of keys, explicit nulls; a field that was absent
    stays absent. Two objects are equal when their values are, whatever the order of their keys.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    _keys: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _remember_keys(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        model = handler(data)
        if isinstance(data, dict):
            model._keys = tuple(data)
        return model

    @model_serializer(mode="wrap")
    def _restore_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        given = self.model_fields_set | (self.model_extra or {}).keys()
        values = {key: value for key, value in handler(self).items() if key in given or value is not None}
        return {key: values[key] for key in self._keys if key in values} | values

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ExtensibleModel)
            and type(self) is type(other)
            and self.__dict__ == other.__dict__
            and self.model_extra == other.model_extra
        )

    __hash__ = None  # type: ignore[assignment]


_TOO_LARGE = 2**63


def _is_number(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < _TOO_LARGE
    return type(value) is float and math.isfinite(value)


def validate_number(value: Any) -> float:
    """Validate a `Number`, for types that are a number or something else."""
    if _is_number(value):
        return value  # type: ignore[no-any-return]
    raise PydanticCustomError("number", "Input should be a finite number")


def _logprob(value: Any) -> float:
    if _is_number(value) and value <= 0:
        return value  # type: ignore[no-any-return]
    raise PydanticCustomError("logprob", "Input should be a finite number that is at most 0")


Number = Annotated[float, PlainValidator(validate_number)]
"""A finite number that stays what it was: an int is not turned into a float."""

LogProb = Annotated[float, PlainValidator(_logprob)]
"""A finite log-probability: a number that is at most 0."""

Count = Annotated[int, Field(ge=0, lt=_TOO_LARGE)]
Fraction = Annotated[float, Field(ge=0, le=1)]
TokenId = Annotated[int, Field(ge=0, lt=2**31)]

PolicyVersion = Annotated[int, Field(ge=0, lt=_TOO_LARGE)]
"""The version of published weights: 0 at the start of a run, one more after every update."""
