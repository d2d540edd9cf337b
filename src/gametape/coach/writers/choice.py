"""Which writers put hints into words for a model."""

from gametape.coach.writers.models import JudgeWriter, PolicyWriter
from gametape.coach.writers.protocol import HintWriter
from gametape.coach.writers.rules import RuleWriter, as_reminder
from gametape.core.errors import BadInput
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.token_conversation import TokenModel
from gametape.verify.integrity.llm_judge import open_judge

POLICY = "policy"
"""The name of a judge that is the policy itself."""


def worded_for(chat_format: ChatFormat, text: str) -> str:
    """A hint of worlds as the coach would say it to a model of this format: what is practised and measured has to be
    what is said in training."""
    return text if isinstance(chat_format, TerseChatFormat) else as_reminder(text)


def writers_for(model: TokenModel, judge: str = "") -> tuple[HintWriter, ...]:
    """The judge, where there is one, then rules. A model whose tokens are the words of worlds reads no prose: its hints
    are what messages say, in the form that its warm start taught."""
    if isinstance(model.chat_format, TerseChatFormat):
        if judge:
            raise BadInput("ttf.judge: a tiny policy knows the words of its worlds only, and reads no judge's line")
        return ()
    if not judge:
        return (RuleWriter(),)
    return (PolicyWriter(model) if judge == POLICY else JudgeWriter(open_judge(judge)), RuleWriter())
