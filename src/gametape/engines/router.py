"""A router over two models: the local one first where its chance is worth the cost, the frontier model after a failure.

The model is chosen where a context begins, never in the middle of one: what one model sampled is not what another would
read. The egress policy that both models were opened with decides what may leave the machine; the router only reads it,
so that local work goes on where a frontier model may not be used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gametape.core.messages import Sampling
from gametape.engines.conversation import Conversation, ConversationWrapper, Model, Reply, ToolDefinition
from gametape.engines.egress_policy import EgressPolicy

PRIOR_SUCCESS_RATE = 0.5
"""The chance that the local model succeeds, while no outcome is known."""
HOPELESS_RATE = 0.1
"""Below this chance the local model is not worth the time, even where it costs nothing."""


def should_try_local_first(p_local: float, cost_local: float, cost_frontier: float) -> bool:
    """Whether trying locally first is expected to be cheaper: `p_local > cost_local / cost_frontier`.

    Where the price of the frontier model is not known, the local model goes first.
    """
    return cost_frontier <= 0 or p_local > cost_local / cost_frontier


@dataclass(frozen=True)
class RouterArm:
    """A model and what an attempt with it is expected to cost, in dollars."""

    model: Model
    cost: float = 0.0


@dataclass(frozen=True)
class RouterChoice:
    """The model of a context, and why it is this one."""

    model: Model
    why: str


class Router:
    """A model made of two. `p_local` is called each time a context begins.

    Without a frontier model, or where the egress policy forbids it, everything stays with the local one.
    """

    def __init__(
        self,
        local: RouterArm,
        frontier: RouterArm | None,
        egress: EgressPolicy,
        p_local: Callable[[], float] = lambda: PRIOR_SUCCESS_RATE,
    ) -> None:
        self._local = local
        outside = frontier is not None and not frontier.model.local
        self._frontier = None if egress.local_only and outside else frontier
        self._p_local = p_local
        self._models = [arm.model for arm in (self._local, self._frontier) if arm is not None]
        self.name = " > ".join(model.name for model in self._models)
        self.local = all(model.local for model in self._models)
        self.trainable = self._frontier is None and local.model.trainable  # two models are not one policy

    @property
    def window(self) -> int:
        return min(model.window for model in self._models)

    def choose(self) -> RouterChoice:
        """The model of the next context, where nothing has failed yet."""
        local, frontier = self._local, self._frontier
        if frontier is None:
            return RouterChoice(local.model, "the only model that may be used here")
        p = self._p_local()
        odds = f"odds of {local.model.name} {p:.2f}"
        if p < HOPELESS_RATE:
            return RouterChoice(frontier.model, f"{odds}, below {HOPELESS_RATE:g}")
        costs = f"cost ${local.cost:.4f} against ${frontier.cost:.4f}"
        if frontier.cost <= 0:
            costs = f"no cost of {frontier.model.name} on record"
        if should_try_local_first(p, local.cost, frontier.cost):
            return RouterChoice(local.model, f"{odds}, {costs}: worth a try first")
        return RouterChoice(frontier.model, f"{odds}, {costs}: not worth a try first")

    def can_escalate_from(self, model_name: str | None) -> bool:
        """Whether there is a frontier model, and this is not it."""
        return self._frontier is not None and self._frontier.model.name != model_name

    @property
    def escalated_model(self) -> Model:
        """The model after a failure: the frontier model where there is one."""
        return (self._frontier or self._local).model

    def find_model(self, name: str | None) -> Model | None:
        return next((model for model in self._models if model.name == name), None)

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> "RoutedConversation":
        return RoutedConversation(self, lambda model: model.start_conversation(sampling, conversation_id, constrain))

    async def close(self) -> None:
        for model in self._models:
            await model.close()


class RoutedConversation(ConversationWrapper):
    """A conversation in which each context has one of the router's models; its replies say which."""

    def __init__(self, router: Router, start: Callable[[Model], Conversation]) -> None:
        self._router = router
        self._start = start
        self._model = router.choose().model
        self._escalated = False
        super().__init__(start(self._model))
        self._opening: tuple[str, Sequence[ToolDefinition], str] | None = None
        """How the context began, while nothing came after it."""

    @property
    def failures(self) -> Sequence[Any]:
        """The requests of the last `ask` that failed."""
        return getattr(self._inner, "failures", ())

    def escalate(self) -> bool:
        """A goal failed or a breaker tripped: later contexts begin with the frontier model. False if there is none, or
        if it is the one that failed."""
        if not self._router.can_escalate_from(self._model.name):
            return False
        self._escalated = True
        return True

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._switch_to(self._router.escalated_model if self._escalated else self._router.choose().model)
        self._inner.begin(system, tools, user)
        self._opening = (system, tools, user)

    def add_user_message(self, text: str) -> None:
        self._opening = None
        self._inner.add_user_message(text)

    async def ask(self, max_tokens: int) -> Reply:
        reply = await self._inner.ask(max_tokens)
        self._opening = None
        return replace(reply, model_name=self._model.name)

    def replay(self, reply: Reply) -> None:
        """A recorded context continues with the model that it began with, whatever would be chosen now."""
        recorded = self._router.find_model(reply.model_name)
        if self._opening is not None and recorded is not None and recorded is not self._model:
            self._switch_to(recorded)
            self._inner.begin(*self._opening)
        self._opening = None
        self._inner.replay(reply)

    def _switch_to(self, model: Model) -> None:
        if model is not self._model:
            self._model = model
            self._inner = self._start(model)


def escalate(conversation: Conversation) -> bool:
    """Let later contexts begin with a stronger model, if the conversation has one that was not used yet."""
    return isinstance(conversation, RoutedConversation) and conversation.escalate()
