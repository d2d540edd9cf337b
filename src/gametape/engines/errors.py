"""The errors of engines: why a request to a model brought no answer."""

from typing import Literal

from gametape.core.errors import GametapeError

EngineErrorKind = Literal["timeout", "rate_limited", "server_error", "cut_stream", "unreachable", "refused", "garbled"]
_RETRYABLE: frozenset[EngineErrorKind] = frozenset(
    {"timeout", "rate_limited", "server_error", "cut_stream", "unreachable", "garbled"}
)


class EngineError(GametapeError):
    """No answer came. The record holds `kind`; `retry_after` is how many seconds the server asked us to wait.

    `wasted_tokens` were paid for and are lost: the part of a stream that came before it was cut. `status` is that of
    the HTTP answer, `detail` the server's own words, and `parameter` what it says was wrong in the request.
    """

    exit_code = 3

    def __init__(
        self,
        kind: EngineErrorKind,
        text: str,
        retry_after: float | None = None,
        wasted_tokens: int = 0,
        status: int | None = None,
        parameter: str | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.retry_after = retry_after
        self.wasted_tokens = wasted_tokens
        self.status = status
        self.parameter = parameter
        self.detail = detail

    @property
    def retryable(self) -> bool:
        """Whether asking again may help."""
        return self.kind in _RETRYABLE


class ContextTooLong(GametapeError):
    """The conversation does not fit into the model's window any more; asking again will not help, compaction may.

    `window` and `prompt_tokens` are what the server says of its window and of the request, where it says so;
    `about_bound` whether it also speaks of the tokens that were asked for.
    """

    def __init__(
        self, text: str, window: int | None = None, prompt_tokens: int | None = None, about_bound: bool = False
    ) -> None:
        super().__init__(text)
        self.window = window
        self.prompt_tokens = prompt_tokens
        self.about_bound = about_bound

    def room(self, asked: int) -> int:
        """The tokens to ask for instead of `asked`; 0 where the conversation itself is too long, or may be."""
        if self.window is not None and self.prompt_tokens is not None and self.window - self.prompt_tokens < asked:
            return max(0, self.window - self.prompt_tokens)
        return asked // 2 if self.about_bound else 0
