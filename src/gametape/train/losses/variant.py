"""The names of the family's members."""

import re
from typing import Literal, get_args

from gametape.core.errors import BadInput

Variant = Literal["loo", "dr_grpo", "grpo", "dapo", "cispo", "gspo"]

_ALSO: dict[str, Variant] = {"leave_one_out": "loo", "rloo": "loo", "drgrpo": "dr_grpo"}


class UnknownVariant(BadInput, ValueError):
    """A name that no variant has; the text lists those there are."""


def variant_named(name: str) -> Variant:
    """The variant that a name means, also as papers write it: `Dr.GRPO`, `leave-one-out`."""
    plain = re.sub(r"[\s.\-]+", "_", name.strip().lower())
    known: tuple[Variant, ...] = get_args(Variant)
    for variant in known:
        if variant == _ALSO.get(plain, plain):
            return variant
    raise UnknownVariant(f"no variant {name!r}; there are {', '.join(known)}")
