"""Which key a server is sent: that of its provider at the provider's own origin, else the one for servers by URL.

A key travels over https, to this machine, or through a Unix socket; never in the clear to another host.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gametape.core.errors import BadInput, MissingDependency
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.providers import SERVER_KEY_VARIABLE, refuse_built_in_key
from gametape.engines.server.address import ServerAddress

_LEAST_SECRET = 8


@dataclass(frozen=True)
class ServerKey:
    """The key to send, if any; `withheld` is the variable of a key that is set and is for another server."""

    value: str | None = None
    variable: str | None = None
    withheld: str | None = None

    def explain(self) -> str:
        """What to do about a server that refuses this key."""
        if self.value is not None:
            return f"it was sent the key in ${self.variable}"
        if self.withheld is not None:
            return (
                f"${self.withheld} is set but goes to its own provider only; "
                f"the key of a server named by its URL is ${SERVER_KEY_VARIABLE}"
            )
        return f"it was sent no key; set ${self.variable}" if self.variable else "it was sent no key"

    def hide(self, text: str) -> str:
        """A server's words, decoded, without the key, should it repeat it. A short one is hidden as a whole word."""
        if not self.value or len(self.value) >= _LEAST_SECRET:
            return self.mask(text)
        return re.sub(rf"(?<!\w){re.escape(self.value)}(?!\w)", "[key]", text)

    def mask(self, text: str) -> str:
        """A model's words without the key. One that is too short to be a secret may be an ordinary word, and stays."""
        return text.replace(self.value, "[key]") if self.value and len(self.value) >= _LEAST_SECRET else text

    def __repr__(self) -> str:
        return f"ServerKey(variable={self.variable!r}, withheld={self.withheld!r})"


def find_key(address: ServerAddress, egress: EgressPolicy, environment: Mapping[str, str] | None = None) -> ServerKey:
    """The key for this server.

    Raises `MissingDependency` where a hosted provider's key is not set, and `BadInput` where the key would have to go
    to another host in the clear.
    """
    environment = os.environ if environment is None else environment
    provider, chosen = address.provider, address.settings.key_variable
    if not (address.own and chosen == provider.key_variable):
        refuse_built_in_key(chosen, address.name)
    variable = chosen or (provider.key_variable if address.own else SERVER_KEY_VARIABLE)
    value = _read(environment, variable)
    if value is None:
        if address.own and provider.hosted:
            raise MissingDependency(f"{address.name} needs a key: set ${variable}")
        spare = provider.key_variable
        return ServerKey(None, variable, spare if spare != variable and _read(environment, spare) else None)
    if not _is_private(address, egress):
        raise BadInput(
            f"${variable} is set, and {address.server} would be sent it in the clear: use https, or unset it"
        )
    return ServerKey(value, variable)


def _is_private(address: ServerAddress, egress: EgressPolicy) -> bool:
    url = address.api_url
    return address.socket_path is not None or url.scheme == "https" or egress.is_local(url.host)


def _read(environment: Mapping[str, str], variable: str | None) -> str | None:
    key = environment.get(variable, "").strip() if variable else ""
    if key and not (key.isascii() and key.isprintable()):
        raise BadInput(f"${variable} holds characters that no header can carry")
    return key or None
