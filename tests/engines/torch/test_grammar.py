"""Turns under a grammar: they can be read, and their log-probabilities are those of what was left to draw from."""

import asyncio
import random
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("llguidance")

from tokenizers import Tokenizer, models  # noqa: E402

from gametape.core.errors import BadInput  # noqa: E402
from gametape.core.messages import GenerateRequest, Sampling  # noqa: E402
from gametape.engines.chat_formats.byte_format import byte_chat_format  # noqa: E402
from gametape.engines.chat_formats.tool_call_grammar import MAX_TEXT  # noqa: E402
from gametape.engines.tokenizers.trained import TrainedTokenizer  # noqa: E402
from gametape.engines.torch.build import build_engine  # noqa: E402
from gametape.engines.torch.grammar import GrammarCompiler  # noqa: E402
from gametape.engines.torch.sampler import token_logprobs  # noqa: E402
from gametape.engines.torch.stepper import EngineLimits  # noqa: E402
from tests.patience import HANG  # noqa: E402

from ..tiny import CHATML, HERMES, LLAMA, TOOLS, tiny_chat_format, tiny_network  # noqa: E402
from .networks import plain_logits  # noqa: E402

VOCABULARY = 410
"""More than the tokenizer has."""
ODD = [{**TOOLS[0], "name": name} for name in ("read", 'odd"näme/\\')]


FORMS = {"fenced": "\n\n```tool\n", "bytes": "\n\n```tool\n", "tagged": "<tool_call>\n", "bare": ""}
"""How a call begins after text in each form."""


def dialect_of_form(form, place):
    templates = {"fenced": CHATML, "tagged": HERMES, "bare": LLAMA}
    return tiny_chat_format(place, templates[form]) if form in templates else byte_chat_format()


@pytest.mark.parametrize("form", FORMS)
def test_every_turn_that_a_grammar_allows_can_be_read(form, tmp_path):
    """Drawn at random, with a liking for what could go wrong: quotes, brackets, tags, escapes."""
    chat_format = dialect_of_form(form, tmp_path)
    grammars = GrammarCompiler(chat_format.tokenizer, VOCABULARY)
    risky = {i for i in range(VOCABULARY) if risk(chat_format.tokenizer.decode([i]))}
    for seed in range(25):
        chance, matcher, ids = random.Random(seed), grammars.matcher(chat_format.grammar(ODD)), []
        begin = chat_format.tokenizer.encode(FORMS[form])
        while ids[-1:] != [chat_format.stop_ids[0]]:
            allowed = matcher.allowed_tokens(chat_format.stop_ids).nonzero()[:, 0].tolist()
            liked = [i for i in allowed if i in risky or i in chat_format.stop_ids]
            if begin and begin[0] in allowed and len(ids) > seed % 9:
                ids.append(begin.pop(0))
            else:
                ids.append(chance.choice(liked if liked and chance.random() < 0.8 else allowed))
            if ids[-1] not in chat_format.stop_ids:
                matcher.consume(ids[-1])
        parsed = chat_format.parse(ids)
        assert (len(parsed.calls), parsed.problem) == (1, None), chat_format.tokenizer.decode(ids)
        assert parsed.calls[0].name in {tool["name"] for tool in ODD}


def risk(text):
    return text != "" and set(text) <= set('"{}\\`\n</>udDtol_ca1e.')


def asked(chat_format, seed, max_tokens=120, sampling=None, **more):
    grammar = chat_format.grammar(TOOLS)
    prompt = chat_format.encode_opening("s", TOOLS, f"u{seed}")
    sampling = sampling or Sampling(seed=seed, temperature=0.8, top_k=(0, 5)[seed % 2], top_p=(1.0, 0.9)[seed % 3 == 0])
    given = {"stop_ids": list(chat_format.stop_ids), "grammar": grammar} | more
    return GenerateRequest(request_id="r", prompt_ids=prompt, max_tokens=max_tokens, sampling=sampling, **given)


def generated(chat_format, requests, tokens, network=None):
    async def run():
        engine = build_engine(network or tiny_network(VOCABULARY), EngineLimits(), tokens, chat_format.tokenizer)
        try:
            return await asyncio.gather(*map(engine.generate, requests)), await engine.stats()
        finally:
            await engine.close()

    return asyncio.run(asyncio.wait_for(run(), HANG))


def test_constrained_and_free_turns_run_together_exactly(tmp_path):
    """In little room, so that sequences are stopped and go on."""
    chat_format = dialect_of_form("bare", tmp_path)
    requests = [asked(chat_format, seed, 80) for seed in range(16)]
    requests += [asked(chat_format, seed, 80, grammar=None) for seed in range(3)]
    answers, stats = generated(chat_format, requests, 900)
    assert stats.preempted
    finished = 0
    network, grammars = tiny_network(VOCABULARY), GrammarCompiler(chat_format.tokenizer, VOCABULARY)
    for request, answer in zip(requests, answers, strict=True):
        assert answer.constrained == (request.grammar is not None)
        ids = [*request.prompt_ids, *answer.completion_ids]
        logits = plain_logits(network, ids)[len(request.prompt_ids) - 1 : -1]
        if answer.constrained:
            matcher = grammars.matcher(request.grammar)
            for row, token in zip(logits, answer.completion_ids, strict=True):
                row[~matcher.allowed_tokens(request.stop_ids)] = -torch.inf
                matcher.consume(token)
        expected = token_logprobs(logits, torch.tensor(answer.completion_ids), [request.sampling] * len(logits))
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-4, rtol=0)
        if answer.constrained and answer.finish == "stop":
            parsed = chat_format.parse(answer.completion_ids)
            assert (len(parsed.calls), parsed.problem) == (1, None)
            finished += 1
    assert finished > 5


def test_a_turn_without_stop_ids_ends_with_its_grammar():
    chat_format = byte_chat_format()
    request = asked(chat_format, 1, grammar='root ::= "yes" | "no, never"', stop_ids=[])
    (answer,), _ = generated(chat_format, [request], 4096)
    assert chat_format.tokenizer.decode(answer.completion_ids) in ("yes", "no, never")
    assert (answer.finish, answer.constrained) == ("stop", True)


def test_a_dead_end_is_left_and_not_called_constrained():
    """The network has bytes up to 99, so it can say a and not z."""
    chat_format = byte_chat_format()
    request = asked(chat_format, 1, 4, grammar='root ::= "az"').model_copy(update={"prompt_ids": [1]})
    (answer,), _ = generated(chat_format, [request], 4096, tiny_network(100))
    assert (answer.completion_ids[0], len(answer.completion_ids), answer.constrained) == (97, 4, False)


@pytest.mark.parametrize("grammar", ["", "root ::= missing", 'root ::= "a" (', "leaf ::= [a-z]"])
def test_what_is_no_grammar_is_bad_input(grammar):
    chat_format = byte_chat_format()
    with pytest.raises(BadInput, match="grammar"):
        generated(chat_format, [asked(chat_format, 1, grammar=grammar)], 4096)


def test_with_a_tokenizer_that_the_library_does_not_know_turns_are_free():
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    assert GrammarCompiler(TrainedTokenizer(words.to_str()), 2).matcher('root ::= "a"') is None


def test_without_the_library_turns_are_free_and_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "llguidance", None)
    chat_format = byte_chat_format()
    (answer,), _ = generated(chat_format, [asked(chat_format, 1, 5)], 4096)
    assert (answer.constrained, len(answer.completion_ids)) == (False, 5)


@pytest.mark.parametrize("form", ["fenced", "tagged"])
def test_a_model_that_likes_to_talk_comes_to_its_call(form, tmp_path):
    """Drawn at random from all that is allowed, a turn has a call after a little text, however long it may be."""
    chat_format = dialect_of_form(form, tmp_path)
    requests = [asked(chat_format, seed, 300, Sampling(seed=seed)) for seed in range(8)]
    answers, _ = generated(chat_format, requests, 8192)
    for answer in answers:
        turn = chat_format.tokenizer.decode(answer.completion_ids)
        text, call, _ = turn.partition(FORMS[form].strip() + "\n")
        assert call, turn
        assert len(text) <= 3 * MAX_TEXT + 1
        if answer.finish == "stop":
            assert len(chat_format.parse(answer.completion_ids).calls) == 1
