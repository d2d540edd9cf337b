"""The HTTP client that an `EgressPolicy` makes, which checks every request. Separate because httpx loads slowly."""

import ssl
from functools import cache
from pathlib import Path

import httpx

from gametape.engines.egress_policy import EgressPolicy


def make_http_client(egress: EgressPolicy, timeout: httpx.Timeout, socket: Path | None) -> httpx.AsyncClient:
    """See `EgressPolicy.http_client`, the only caller."""
    transport = _GuardedTransport(egress, socket)
    return httpx.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False, trust_env=False)


class _GuardedTransport(httpx.AsyncBaseTransport):
    def __init__(self, egress: EgressPolicy, socket: Path | None) -> None:
        self._egress = egress
        self._is_socket = socket is not None
        uds = None if socket is None else str(socket)
        self._transport = httpx.AsyncHTTPTransport(uds=uds, verify=_certificates(), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._is_socket:
            return await self._transport.handle_async_request(request)
        *others, last = self._egress.allowed_addresses(request.url.host)
        for address in others:
            try:
                return await self._transport.handle_async_request(_with_address(request, address))
            except httpx.ConnectError:
                continue
        return await self._transport.handle_async_request(_with_address(request, last))

    async def aclose(self) -> None:
        await self._transport.aclose()


@cache
def _certificates() -> ssl.SSLContext:
    """Loaded once: it takes longer than a short request."""
    return httpx.create_ssl_context(trust_env=False)


def _with_address(request: httpx.Request, address: str) -> httpx.Request:
    """The same request to this address; certificates are still checked against the host's name."""
    host = request.url.host
    if address == host:
        return request
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )
