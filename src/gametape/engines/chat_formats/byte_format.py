"""The fenced chat format over bytes, for scripted policies."""

from gametape.engines.chat_formats.fenced import FencedChatFormat
from gametape.engines.chat_formats.turn_frame import Placeholder, TurnFrame
from gametape.engines.tokenizers.byte import ASSISTANT, END, SYSTEM, USER, ByteTokenizer

__all__ = ["BYTE_FRAME", "END", "byte_chat_format"]

BYTE_FRAME = TurnFrame(
    opening=((SYSTEM,), Placeholder("system"), (END, USER), Placeholder("user"), (END, ASSISTANT)),
    user_message=((USER,), Placeholder("user"), (END, ASSISTANT)),
    end=(END,),
    stop_ids=(END,),
)


def byte_chat_format() -> FencedChatFormat:
    return FencedChatFormat(ByteTokenizer(), BYTE_FRAME)
