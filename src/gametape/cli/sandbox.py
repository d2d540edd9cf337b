"""`gametape sandbox`: run one command in the sandbox."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, emit_json

_NO_SUCH_PROGRAM = 127

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Run a command that is assumed to be hostile."""


@app.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    argv: Annotated[list[str], typer.Argument(metavar="-- ARGV...", help="The command and its arguments.")],
    workspace: Annotated[
        Path | None,
        typer.Option(help="Host directory, writable at /workspace inside. Default: an empty one."),
    ] = None,
    backend: Annotated[str, typer.Option(help="The sandbox backend.")] = "bubblewrap",
    timeout: Annotated[float | None, typer.Option(help="Wall-clock seconds (60).")] = None,
    cpu: Annotated[int | None, typer.Option(help="Processor seconds of all its processes (no limit).")] = None,
    memory: Annotated[int | None, typer.Option(help="Megabytes of memory (2048).")] = None,
    processes: Annotated[int | None, typer.Option(help="Processes and threads at once (256).")] = None,
    disk: Annotated[int | None, typer.Option(help="Megabytes it may write (1024).")] = None,
    output_bytes: Annotated[int | None, typer.Option(help="Bytes it may print (1000000).")] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="A host it may reach through the logging proxy: name, *.name or address, with :port if it is not 80 "
            "or 443. Repeatable. Default: none.",
        ),
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="A policy file, TOML or JSON; options above win over it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run ARGV with limits and without network and host files; report what it tried and what ended it.

    Exits 0 if the command exited 0, else 1. What was denied is listed as violations, what it asked of the
    hosts that were allowed as network.

    Example: gametape sandbox exec --memory 256 -- python3 -c 'print(open("/etc/shadow").read())'
    """
    from gametape.cli.policy_file import first_error, load_policy
    from gametape.core.errors import BadInput
    from gametape.sandbox.backend import SandboxSpec, open_backend

    sandbox_policy = load_policy(policy)
    try:
        sandbox_policy = sandbox_policy.with_limits(
            wall_seconds=timeout,
            cpu_seconds=cpu,
            memory_mb=memory,
            processes=processes,
            disk_mb=disk,
            output_bytes=output_bytes,
        ).with_hosts(allow_host or ())
    except ValueError as error:
        raise BadInput(first_error(error)) from error
    result = open_backend(backend).start(SandboxSpec(policy=sandbox_policy, workspace=workspace)).exec(argv)
    if as_json:
        emit_json(result.model_dump(mode="json"))
    else:
        sys.stdout.write(result.stdout)
        sys.stderr.write(result.stderr)
        for violation in result.violations:
            print(f"gametape: {violation.action} {violation.syscall}{violation.args}", file=sys.stderr)
        for request in result.network:
            print(f"gametape: {request.summary()}", file=sys.stderr)
        if result.killed_by:
            print(f"gametape: ended by its limit on {result.killed_by}", file=sys.stderr)
        elif result.exit_code:
            why = " (there is no such program in the sandbox)" if result.exit_code == _NO_SUCH_PROGRAM else ""
            print(f"gametape: the command ended with exit code {result.exit_code}{why}", file=sys.stderr)
    raise typer.Exit(0 if result.ok else 1)
