"""Who may ask, and what every answer says: the one place that decides it.

A page of another site can send requests to this machine, or point its own name at it. So the name that was asked for
(`Host`) has to be this server's, a foreign `Origin` is refused, and what changes something needs this server's own
origin beside the secret that is in its forms. Where it listens beyond this machine, everybody needs the token.
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"
COOKIE = "gametape_studio"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::\d{1,5})?", re.ASCII)
_READING = frozenset({"GET", "HEAD"})


class RequestGuard:
    """Wraps the application. `token` is None where only this machine can reach it."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str | None) -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope) or self._entrance(scope)
        answer: ASGIApp = refusal or self._app
        await answer(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._token is None and host_name(host) not in self._hosts:
            return PlainTextResponse("this server does not have that name\n", 421)
        origin = headers.get("origin")
        own = {f"{scope['scheme']}://{host}"}
        if self._token is not None:
            own.add(f"https://{host}")  # something in front of it may encrypt
        if (origin is not None and origin not in own) or (origin is None and scope["method"] not in _READING):
            return PlainTextResponse("this request comes from another place\n", 403)
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "navigate")
        if site in ("cross-site", "same-site") and (mode != "navigate" or scope["method"] not in _READING):
            return PlainTextResponse("this request comes from another place\n", 403)
        return None

    def _entrance(self, scope: Scope) -> ASGIApp | None:
        """What is answered to somebody without the token; None to everybody else."""
        if self._token is None:
            return None
        headers = Headers(scope=scope)
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        shown = next((value for key, value in query if key == TOKEN), None)
        if shown is not None and _same(shown, self._token) and scope["method"] in _READING:
            rest = urlencode([(key, value) for key, value in query if key != TOKEN])
            response = RedirectResponse("/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else ""), 303)
            response.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return response
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if _same(_cookie(headers), self._token) or _same(bearer, self._token):
            return None
        return PlainTextResponse("open the address that gametape studio printed: it has the token\n", 401)


def host_name(host: str) -> str:
    """The name in a `Host` header, without the port; empty for what is no such header."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def make_token() -> str:
    return secrets.token_urlsafe(24)


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return send_with_headers
