"""How messages leave the desk: a command of the user's reads them from stdin, or they are posted to a webhook.

Both get one JSON object with `key`; a webhook also gets the header `Idempotency-Key`. A message that is sent twice
because of a kill carries the same key both times. The command comes from the user's own settings and runs on the host;
nothing an agent wrote is ever part of a command line.
"""

import asyncio
import contextlib
import json
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from gametape.core.errors import BadInput, GametapeError
from gametape.core.validation import problems_from
from gametape.desk.jobs import Json
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import EngineError

_SECONDS = 30.0


class DeliveryError(GametapeError):
    """The receiver did not accept a message. It is kept, and tried again."""

    exit_code = 1


class DeliveryChannel(BaseModel):
    """A command, a webhook, both or neither."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = ()
    webhook: str = ""

    def __bool__(self) -> bool:
        return bool(self.command or self.webhook)

    def __str__(self) -> str:
        """What it does with a message. Of a webhook only the host is named: the rest may be a secret."""
        does = [f"handed to the command {self.command[0]}"] if self.command else []
        does += [f"posted to {urlsplit(self.webhook).hostname or 'a webhook'}"] if self.webhook else []
        return " and ".join(does)

    async def deliver(self, key: str, payload: dict[str, Json], local_only: bool = False) -> None:
        """Deliver at least once per key. With `local_only`, a webhook on another machine is refused. Raises
        `DeliveryError`."""
        message = {**payload, "key": key}
        if self.command:
            await _run(self.command, json.dumps(message).encode())
        if self.webhook:
            await _post(self.webhook, key, message, EgressPolicy(local_only=local_only))


class DeliveryConfig(BaseModel):
    """`HOME/desk/desk.toml`: `[notify]` and `[outbox]`, each with `command = ["...", ...]` or `webhook = "URL"`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    notify: DeliveryChannel = DeliveryChannel()
    outbox: DeliveryChannel = DeliveryChannel()


def load_delivery_config(home: Path) -> DeliveryConfig:
    path = home / "desk" / "desk.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return DeliveryConfig.model_validate(document)
    except FileNotFoundError:
        return DeliveryConfig()
    except ValidationError as error:
        raise BadInput(f"{path}: {problems_from(error, document)[0]}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from None


async def _run(command: tuple[str, ...], data: bytes) -> None:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=asyncio.subprocess.DEVNULL, stderr=pipe
        )
    except OSError as error:
        raise DeliveryError(f"{command[0]}: {error.strerror}") from None
    try:
        async with asyncio.timeout(_SECONDS):
            _, errors = await process.communicate(data)
    except TimeoutError:
        raise DeliveryError(f"{command[0]}: took longer than {_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:] or [""]
        raise DeliveryError(f"{command[0]}: exit code {process.returncode} {last[0]}".rstrip())


async def _post(url: str, key: str, payload: dict[str, Json], egress: EgressPolicy) -> None:
    import httpx  # noqa: PLC0415 - slow to import

    try:
        async with egress.http_client(httpx.Timeout(_SECONDS)) as client:
            response = await client.post(url, json=payload, headers={"Idempotency-Key": key})
    except (httpx.HTTPError, httpx.InvalidURL, EngineError) as error:
        raise DeliveryError(f"{url}: {error or type(error).__name__}") from None
    if not response.is_success:
        raise DeliveryError(f"{url}: answered {response.status_code}")
