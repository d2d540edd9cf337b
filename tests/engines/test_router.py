import asyncio
from ipaddress import ip_address

import pytest

from gametape.core.messages import Sampling
from gametape.engines.conversation import Reply
from gametape.engines.egress_policy import EgressDenied, EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.openai import ServerModel, open_server_model
from gametape.engines.router import HOPELESS_RATE, RoutedConversation, Router, RouterArm, should_try_local_first
from tests.engines.openai.server import FaultServer, Status

OPEN = EgressPolicy(is_local_address=lambda address: address == ip_address("127.0.0.1"))
"""As if 127.0.0.2 were another machine."""
SHUT = EgressPolicy(local_only=True, is_local_address=OPEN.is_local_address)


def opened(server: FaultServer, egress: EgressPolicy = OPEN) -> ServerModel:
    return open_server_model(f"openai:tiny@{server.url}", egress)


def begun(router: Router) -> RoutedConversation:
    conversation = router.start_conversation(Sampling())
    conversation.begin("s", [], "u")
    return conversation


@pytest.mark.parametrize(
    ("p", "local", "frontier", "expected"),
    [(0.5, 1, 4, True), (0.2, 1, 4, False), (0.25, 1, 4, False), (0.01, 0, 4, True), (0, 0, 4, False), (0, 1, 0, True)],
)
def test_the_rule(p: float, local: float, frontier: float, expected: bool) -> None:
    assert should_try_local_first(p, local, frontier) is expected


def test_local_first_then_the_frontier_from_the_next_context_on() -> None:
    with FaultServer(["near"]) as here, FaultServer(["far"], host="127.0.0.2") as there:
        router = Router(RouterArm(opened(here)), RouterArm(opened(there), 1.0), OPEN)

        async def talk() -> list[Reply]:
            conversation = begun(router)
            replies = [await conversation.ask(9)]
            assert conversation.escalate()
            conversation.add_user_message("go on")
            replies.append(await conversation.ask(9))
            conversation.begin("s", [], "afresh")
            replies.append(await conversation.ask(9))
            await router.close()
            return replies

        replies = asyncio.run(talk())
    assert [reply.text for reply in replies] == ["near", "near", "far"]
    assert [reply.model_name for reply in replies] == [f"openai:tiny@{s.url}" for s in (here, here, there)]
    assert not router.local
    assert not router.trainable


def test_poor_odds_go_to_the_frontier_at_once() -> None:
    with FaultServer(["near"]) as here, FaultServer(["far"], host="127.0.0.2") as there:
        odds = [0.1, 0.9]
        router = Router(RouterArm(opened(here), 1.0), RouterArm(opened(there), 4.0), OPEN, lambda: odds[0])
        assert router.choose().model.name.endswith(there.url)
        odds.pop(0)
        assert router.choose().model.name.endswith(here.url)


def test_local_only_holds_when_the_local_model_fails_and_everything_is_tried() -> None:
    with FaultServer(["far"], host="127.0.0.2") as there:
        frontier = opened(there)
        seen = there.connections
        with FaultServer(["near"], [Status(500), Status(500)]) as here:
            router = Router(RouterArm(opened(here, SHUT), 9.0), RouterArm(frontier, 0.1), SHUT, lambda: 0.0)
            conversation = begun(router)
            for _ in range(2):
                with pytest.raises(EngineError):
                    asyncio.run(conversation.ask(9))
                assert not conversation.escalate()
                conversation.begin("s", [], "u")
            assert asyncio.run(conversation.ask(9)).text == "near"
            assert router.local
        with pytest.raises(EgressDenied):
            opened(there, SHUT)
        assert there.connections == seen


def test_a_recorded_context_goes_on_with_its_own_model() -> None:
    with FaultServer(["near"]) as here, FaultServer(["far"], host="127.0.0.2") as there:
        frontier = opened(there)
        router = Router(RouterArm(opened(here)), RouterArm(frontier, 1.0), OPEN)
        conversation = begun(router)
        conversation.replay(Reply("said before", model_name=frontier.name))
        conversation.add_user_message("go on")
        assert asyncio.run(conversation.fork().ask(9)).text == "far"
        assert [m["content"] for m in there.requests[0].body["messages"]] == ["s", "u", "said before", "go on"]
        assert here.requests == []


def test_a_hopeless_model_is_not_tried_even_where_it_costs_nothing() -> None:
    with FaultServer(["near"]) as here, FaultServer(["far"], host="127.0.0.2") as there:
        odds = [HOPELESS_RATE / 2, HOPELESS_RATE]
        router = Router(RouterArm(opened(here)), RouterArm(opened(there), 4.0), OPEN, lambda: odds[0])
        assert router.choose().model.name.endswith(there.url)
        assert "0.05" in router.choose().why
        odds.pop(0)
        assert router.choose().model.name.endswith(here.url)


def test_the_frontier_model_has_nobody_to_escalate_to() -> None:
    with FaultServer(["near"]) as here, FaultServer(["far"], host="127.0.0.2") as there:
        router = Router(RouterArm(opened(here), 9.0), RouterArm(opened(there), 1.0), OPEN, lambda: 0.5)
        conversation = begun(router)
        assert asyncio.run(conversation.fork().ask(9)).text == "far"
        assert not conversation.escalate()


def test_an_escalation_belongs_to_its_own_conversation() -> None:
    """Attempts of an evaluation share a router."""
    with FaultServer(["near"]) as here, FaultServer(["far"], host="127.0.0.2") as there:
        router = Router(RouterArm(opened(here)), RouterArm(opened(there), 1.0), OPEN)
        failed, other = begun(router), begun(router)
        assert failed.escalate()
        for conversation in (failed, other):
            conversation.begin("s", [], "afresh")
        assert [asyncio.run(each.ask(9)).text for each in (failed, other)] == ["far", "near"]
