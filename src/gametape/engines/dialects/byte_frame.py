"""The plain dialect over bytes: what scripted policies speak."""

from gametape.engines.dialects.frame import Frame, Place
from gametape.engines.dialects.plain import PlainDialect
from gametape.engines.tokenizing.byte import ASSISTANT, END, SYSTEM, USER, ByteTokenizer

__all__ = ["BYTE_FRAME", "END", "byte_dialect"]

BYTE_FRAME = Frame(
    opening=((SYSTEM,), Place("system"), (END, USER), Place("user"), (END, ASSISTANT)),
    told=((USER,), Place("user"), (END, ASSISTANT)),
    end=(END,),
    stop_ids=(END,),
)


def byte_dialect() -> PlainDialect:
    return PlainDialect(ByteTokenizer(), BYTE_FRAME)
