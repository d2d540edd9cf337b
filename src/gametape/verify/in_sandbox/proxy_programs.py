"""Programs that a test runs: they run in the worker's sandbox, never beside the test.

A program may be the code under test (`python -m package`, a script of it) or run a file that the code wrote. So every
program of `subprocess` runs on the far side, with the arguments, input, environment and directory that the test gives;
what comes back is its exit status and its output. `runpy` and click's runner do the same for modules and commands of
the code.
"""

from __future__ import annotations

import importlib
import importlib.abc
import io
import os
import runpy
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .proxy_remotes import RemoteObject
from .wire import WireError

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_ENDS = ((int, bytes, bytes), (type(None), bytes, bytes))
_STREAMS = (None, subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL)


class RemoteProgram(subprocess.Popen):  # type: ignore[type-arg]
    """A program in the worker's sandbox. It runs when the test waits for it or reads from it, with all its input."""

    _session: ProxySession

    def __init__(
        self,
        args: Any,
        *more: Any,
        executable: Any = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        preexec_fn: Any = None,
        shell: bool = False,
        cwd: Any = None,
        env: Any = None,
        universal_newlines: Any = None,
        text: Any = None,
        encoding: str | None = None,
        errors: str | None = None,
        **_: Any,
    ) -> None:
        if preexec_fn is not None or executable is not None or more:
            raise WireError("split mode: a program can only be run by its arguments; such tests use shared mode")
        self.args = args
        self._is_text = bool(text or universal_newlines or encoding or errors)
        self._encoding, self._decode_errors = encoding or "utf-8", errors or "strict"
        self._shell, self._cwd = shell, None if cwd is None else os.fsdecode(cwd)
        self._env = None if env is None else {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()}
        self._targets = stdout, stderr
        self._input = b"" if stdin in _STREAMS else _read_all(stdin)
        self._is_over = False
        self.pid, self.returncode = 0, None
        self._pipe = _Pipe(self) if stdin == subprocess.PIPE else None
        self.stdin = None if self._pipe is None else self._stream(self._pipe)
        self.stdout: Any = None
        self.stderr: Any = None
        if self._pipe is None:
            self._run(None)

    def _run(self, seconds: float | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        arguments = self.args if self._shell else _arguments(self.args)
        fields = arguments, bytes(self._input), self._env, self._cwd, seconds
        answer = self._session.ask(words.RUN_PROGRAM, *fields)
        if type(answer) is not tuple or tuple(map(type, answer)) not in _ENDS:
            raise self._session.end(WireError("a program's end that is none"))
        status, out, err = answer
        if status is None:
            raise subprocess.TimeoutExpired(self.args, seconds or 0, out, err)
        self.returncode = status
        if self._targets[1] == subprocess.STDOUT:
            out, err = out + err, b""
        self.stdout = self._deliver(self._targets[0], out, sys.stdout)
        self.stderr = self._deliver(self._targets[1], err, sys.stderr)

    def _deliver(self, target: Any, data: bytes, default: Any) -> Any:
        if target == subprocess.PIPE:
            return self._stream(io.BytesIO(data))
        if target is None and data:
            os.write(1 if default is sys.stdout else 2, data)
        elif hasattr(target, "write"):
            target.write(data if "b" in getattr(target, "mode", "") else data.decode(self._encoding, "replace"))
        elif type(target) is int and target >= 0:
            os.write(target, data)
        return None

    def _stream(self, raw: io.BytesIO) -> Any:
        if self._is_text:
            return io.TextIOWrapper(raw, self._encoding, self._decode_errors, write_through=True)
        return raw

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        if input is not None:
            self._input += input.encode(self._encoding) if isinstance(input, str) else bytes(input)
        self.wait(timeout)
        out, err = (stream.read() if stream is not None else None for stream in (self.stdout, self.stderr))
        return out, err

    def wait(self, timeout: float | None = None) -> int:
        if not self._is_over:
            self._input = (b"" if self._pipe is None else self._pipe.getvalue()) + self._input
            self._run(timeout)
        return self.returncode or 0

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        """It is over already."""

    def send_signal(self, _: int) -> None:
        """It is over already."""

    def __exit__(self, *_: object) -> None:
        self.wait()

    def __del__(self, *_: object) -> None:
        """Nothing runs here that could be left behind."""


class _Pipe(io.BytesIO):
    """The input of a program, which runs when the test closes it."""

    def __init__(self, program: RemoteProgram) -> None:
        super().__init__()
        self._program = program

    def close(self) -> None:
        if not self.closed:
            self._program.wait()
        super().close()


def _read_all(stream: Any) -> bytes:
    if type(stream) is int:
        raise WireError("split mode: a program cannot read a descriptor of the test; such tests use shared mode")
    data = stream.read()
    return data.encode() if isinstance(data, str) else bytes(data)


def _arguments(args: Any) -> list[str]:
    parts = [args] if isinstance(args, (str, bytes, os.PathLike)) else args
    return [os.fsdecode(part) for part in parts]


def route_programs(session: ProxySession, served: frozenset[str]) -> None:
    """Run the programs of the test, and modules and commands of the code, in the worker's sandbox."""
    RemoteProgram._session = session
    subprocess.Popen = RemoteProgram  # type: ignore[misc]
    _route_modules(session, served)
    sys.meta_path.insert(0, _ClickRoute(session))


def _route_modules(session: ProxySession, served: frozenset[str]) -> None:
    local = runpy.run_module

    def run_module(mod_name: str, init_globals: Any = None, run_name: Any = None, alter_sys: bool = False) -> Any:
        if mod_name not in served:
            return local(mod_name, init_globals, run_name, alter_sys)
        return session.ask(words.RUN_MODULE, mod_name, run_name)

    runpy.run_module = run_module


class _ClickRoute(importlib.abc.MetaPathFinder):
    """Changes click's runner for commands of the code, when a test imports it."""

    def __init__(self, session: ProxySession) -> None:
        self._session = session

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> None:
        if fullname == "click.testing":
            sys.meta_path.remove(self)
            testing = importlib.import_module(fullname)
            _route_click(self._session, testing.CliRunner, testing.Result)


def _route_click(session: ProxySession, runner_class: Any, result_class: Any) -> None:
    local = runner_class.invoke

    def invoke(self: Any, cli: Any, args: Any = None, input: Any = None, env: Any = None, **more: Any) -> Any:
        if not isinstance(cli, RemoteObject):
            return local(self, cli, args=args, input=input, env=env, **more)
        keywords = {"charset": self.charset, "env": dict(self.env), "echo_stdin": self.echo_stdin}
        if hasattr(self, "mix_stderr"):
            keywords["mix_stderr"] = self.mix_stderr
        text = input.read() if hasattr(input, "read") else input
        answer = session.ask(words.INVOKE, cli, args, {"input": text, "env": env, **more}, keywords)
        if type(answer) is not dict or type(answer.get("exit_code")) is not int:
            raise session.end(WireError("a command's end that is none"))
        error = answer.get("exception")
        if error is not None and not isinstance(error, BaseException):
            raise session.end(WireError("a command's end that is none"))
        error = SystemExit(answer["exit_code"]) if answer.pop("has_exited", False) is True else error
        fields = {
            name: answer[name]
            for name in ("stdout_bytes", "stderr_bytes", "output_bytes", "return_value", "exit_code")
            if name in answer
        }
        raised = None if error is None else (type(error), error, None)
        return result_class(runner=self, exception=error, exc_info=raised, **fields)

    runner_class.invoke = invoke
