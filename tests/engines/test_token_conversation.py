"""Token-exact: the ids kept are the ids sampled, whatever is said, read and printed in between."""

import asyncio
import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest, Generation, Sampling, TokenUsage
from gametape.core.tokens import ContextTokens, is_append_only
from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.conversation import Call, Reply, ToolResponse
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.token_conversation import TokenConversation, TokenModel
from gametape.engines.tokenizers.byte import ASSISTANT, END, USER

from .tiny import CHATML, HERMES, LLAMA, NO_SYSTEM, TOOLS, fetched_smollm2, texts, tiny_chat_format

GREEDY = Sampling(temperature=0)


@dataclass
class Babbler:
    """An engine that says anything at all: any id of the vocabulary, special ones too. It writes down what it did."""

    vocabulary: int
    seed: int
    done: list[tuple[GenerateRequest, Generation]] = field(default_factory=list)
    finish: str | None = None

    async def generate(self, request):
        dice = random.Random(f"{self.seed} {request.turn} {request.sampling.seed}")
        ids = [dice.randrange(self.vocabulary) for _ in range(dice.randint(0, min(6, request.max_tokens - 1)))]
        ids += [dice.choice(request.stop_ids)] if dice.random() < 0.6 else []
        generation = Generation(
            request_id=request.request_id,
            completion_ids=ids,
            logprobs=[-dice.random() for _ in ids],
            policy_versions=[dice.randint(0, 3) for _ in ids],
            finish=self.finish or ("stop" if ids and ids[-1] in request.stop_ids else "length"),
            usage=TokenUsage(prompt_tokens=len(request.prompt_ids), completion_tokens=len(ids)),
        )
        self.done.append((request, generation))
        return generation


@cache
def dialects():
    """One of each kind, over each kind of tokenizer."""
    found = [byte_chat_format()]
    for template in (CHATML, HERMES, LLAMA, NO_SYSTEM):
        with TemporaryDirectory() as place:
            found.append(tiny_chat_format(Path(place), template))
    return found


def conversation(chat_format, engine, **more):
    return TokenConversation(engine, chat_format, 1 << 20, more.pop("sampling", GREEDY), **more)


def babbling(chat_format, seed=0, **more):
    return conversation(chat_format, Babbler(chat_format.tokenizer.vocabulary_size, seed), **more)


moves = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), texts),
        st.tuples(st.just("answer"), st.lists(st.tuples(texts, texts, st.booleans()), min_size=1, max_size=2)),
        st.tuples(st.just("begin"), texts),
        st.tuples(st.just("nothing"), st.just("")),
        st.tuples(st.just("both"), texts),
    ),
    max_size=6,
)


def say(talk, move):
    kind, what = move
    if kind in {"tell", "both"}:
        talk.add_user_message(what)
    if kind == "both":
        talk.add_tool_responses([ToolResponse(Call("read", {}), what)])
    if kind == "answer":
        talk.add_tool_responses([ToolResponse(Call(name, {}), content, failed) for name, content, failed in what])
    if kind == "begin":
        talk.begin(what, TOOLS, what)


async def converse(talk, said):
    """The whole conversation, each reply with whether its context was fresh."""
    replies = []
    for move in [("begin", "Be good."), *said]:
        say(talk, move)
        expected = talk.length
        reply = await talk.ask(32)
        assert len(reply.tokens.prompt_ids) == expected
        replies.append((reply, move[0] == "begin"))
    return replies


def check_exact(chat_format, said, seed):
    talk = babbling(chat_format, seed)
    replies = asyncio.run(converse(talk, said))
    readings = [ContextTokens(r.tokens.prompt_ids, r.tokens.completion_ids, fresh) for r, fresh in replies]
    assert is_append_only(readings)
    special, policys = chat_format.tokenizer.special_ids, 0
    for (reply, fresh), (request, generation), (number, move) in zip(
        replies, talk.engine.done, enumerate([("begin", ""), *said]), strict=True
    ):
        tokens = reply.tokens
        assert (tokens.prompt_ids, tokens.completion_ids) == (request.prompt_ids, generation.completion_ids)
        assert (tokens.logprobs, tokens.policy_versions) == (generation.logprobs, generation.policy_versions)
        assert tokens.loss_mask == [1] * len(generation.completion_ids)
        assert request.turn == number
        # What we put between two turns holds exactly the markers that silence would have had.
        policys = 0 if fresh else policys
        between = tokens.prompt_ids[policys:]
        assert [i for i in between if i in special] == _silent_markers(chat_format, move, replies, number, special)
        policys = len(tokens.prompt_ids) + len(tokens.completion_ids)


def _silent_markers(chat_format, move, replies, number, special):
    if move[0] == "begin":
        ids = chat_format.encode_opening("", TOOLS, "")
    else:
        ids = chat_format.close_turn(replies[number - 1][0].tokens.completion_ids)
        answers = len(move[1]) if move[0] == "answer" else int(move[0] == "both")
        ids = ids + (
            chat_format.encode_tool_responses([ToolResponse(Call("x", {}), "")] * answers)
            if answers
            else chat_format.encode_user("")
        )
    return [i for i in ids if i in special]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 4), moves, st.integers(0, 2**16))
def test_ids_are_kept_as_they_were_sampled(kind, said, seed):
    check_exact(dialects()[kind], said, seed)


@cache
def smollm2_dialect():
    return load_chat_format(fetched_smollm2())


@settings(deadline=None, max_examples=30)
@given(moves, st.integers(0, 2**16))
def test_so_they_are_with_smollm2s_tokenizer(said, seed):
    check_exact(smollm2_dialect(), said, seed)


@pytest.mark.slow
@settings(deadline=None, max_examples=3000)
@given(st.integers(0, 5), moves, st.integers(0, 2**16))
def test_ids_are_kept_at_length(kind, said, seed):
    check_exact([*dialects(), smollm2_dialect()][kind], said, seed)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 4), moves, moves, st.integers(0, 2**16), st.integers(0, 9))
def test_forks_and_recalled_conversations_continue_alike(kind, said, later, seed, number):
    async def run():
        chat_format = dialects()[kind]
        talk = babbling(chat_format, seed, sampling=Sampling(seed=number))
        replies = await converse(talk, said)
        recalled = babbling(chat_format, seed, sampling=Sampling(seed=number))
        for reply, _ in replies:
            recalled.replay(reply)
        forked = talk.fork()
        ends = []
        for each in (forked, talk, recalled):
            for move in [("tell", "go on"), *later]:
                say(each, move)
                await each.ask(32)
            ends.append([generation for _, generation in each.engine.done][-1 - len(later) :])
        assert len({end[-1].request_id for end in ends}) == 3
        strip = {"request_id": ""}
        assert [[g.model_copy(update=strip) for g in end] for end in ends[1:]] == [
            [g.model_copy(update=strip) for g in ends[0]]
        ] * 2

    asyncio.run(run())


def test_forks_do_not_touch_each_other():
    talk = babbling(byte_chat_format())
    talk.begin("s", [], "u")
    other = talk.fork()
    talk.add_user_message("only here")
    assert other.length < talk.length
    asyncio.run(other.ask(8))
    assert (talk.turn, other.turn) == (0, 1)
    assert talk.conversation_id != other.conversation_id


def test_recorded_ids_win_over_what_would_be_written_today():
    talk = babbling(byte_chat_format())
    talk.begin("other words", [], "than were recorded")
    recorded = asyncio.run(_recorded())
    talk.replay(recorded)
    talk.add_user_message("go on")
    reply = asyncio.run(talk.ask(8))
    before = recorded.tokens.prompt_ids + recorded.tokens.completion_ids
    assert reply.tokens.prompt_ids[: len(before)] == before


async def _recorded():
    talk = babbling(byte_chat_format())
    talk.begin("s", [], "u")
    return await talk.ask(8)


def test_a_turn_without_ids_is_refused():
    with pytest.raises(BadInput, match="without token ids"):
        babbling(byte_chat_format()).replay(Reply("hello"))


def test_all_that_is_said_before_a_turn_is_one_message():
    talk = babbling(byte_chat_format(), seed=1)
    talk.begin("s", [], "u")
    talk.add_user_message("a")
    first = asyncio.run(talk.ask(8))
    assert bytes(i for i in first.tokens.prompt_ids if i < 256) == b"su\n\na"
    talk.add_tool_responses([ToolResponse(Call("read", {}), "text")])
    talk.add_user_message("hurry")
    talk.add_user_message("up")
    second = asyncio.run(talk.ask(8)).tokens.prompt_ids
    said = [USER, *b"Result of read:\ntext\n\nhurry\n\nup", END, ASSISTANT]
    assert second[-len(said) :] == said


def test_the_window_is_not_overrun():
    talk = TokenConversation(Babbler(256, 0), byte_chat_format(), 20, GREEDY)
    talk.begin("s", [], "u")
    asyncio.run(talk.ask(100))
    assert talk.engine.done[0][0].max_tokens == 20 - 7
    talk.add_user_message("x" * 20)
    before = talk.length
    with pytest.raises(ContextTooLong, match="20"):
        asyncio.run(talk.ask(1))
    assert (talk.length, talk.turn) == (before, 1)


def test_a_cancelled_turn_changes_nothing():
    talk = conversation(byte_chat_format(), Babbler(256, 0, finish="cancelled"))
    talk.begin("s", [], "u")
    with pytest.raises(EngineError) as trouble:
        asyncio.run(talk.ask(8))
    assert (trouble.value.kind, trouble.value.wasted_tokens) == (
        "cut_stream",
        len(talk.engine.done[0][1].completion_ids),
    )
    assert (talk.turn, talk.length) == (0, 7)


def test_every_turn_draws_from_its_own_stream():
    def seeds(seed):
        talk = babbling(byte_chat_format(), sampling=Sampling(seed=seed))
        talk.begin("s", [], "u")
        for _ in range(3):
            asyncio.run(talk.ask(8))
        return [request.sampling.seed for request, _ in talk.engine.done]

    assert seeds(1) == seeds(1)
    assert len({*seeds(0), *seeds(1)}) == 6
    assert seeds(None) == [None] * 3


def test_a_grammar_is_sent_only_when_replies_are_to_be_held_to_it():
    for constrain in (False, True):
        model = TokenModel("m", Babbler(256, 0), byte_chat_format(), 1 << 20)
        talk = model.start_conversation(GREEDY, "c", constrain)
        talk.begin("s", TOOLS, "u")
        asyncio.run(talk.ask(8))
        assert (model.engine.done[0][0].grammar is not None) == constrain
    asyncio.run(model.close())
