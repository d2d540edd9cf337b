"""Rules over code that reaches for other machines."""

import re
from collections.abc import Iterator, Sequence

from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import TaskContext
from gametape.verify.integrity.registry import RuleFinding, code_rule, run_rule
from gametape.verify.integrity.rules.leaked_answers import calls_executing_read_text
from gametape.verify.submission import Submission
from gametape.verify.verifier_run import VerifierRun

NETWORK_CALL = re.compile(
    r"^(urllib\.request\.(urlopen|urlretrieve|build_opener)|http\.client\.HTTPS?Connection|requests\.(get|"
    r"post|put|request|Session|head)"
    r"|httpx\.(get|post|Client|AsyncClient|stream)|urllib3\.\w+|aiohttp\.\w+|ftplib\.FTP\w*|"
    r"smtplib\.SMTP\w*|telnetlib\.Telnet|xmlrpc\.client\.ServerProxy|paramiko\.\w+"
    r"|socket\.(create_connection|getaddrinfo|gethostbyname(_ex)?)|asyncio\.open_connection|"
    r"logging\.handlers\.(Datagram|Socket|SysLog|HTTP|SMTP)Handler|multiprocessing\.connection\.Client|"
    r"multiprocessing\.managers\.\w+\(\)\.connect|(socket\.socket|ssl\.\w+)\(\)[\w.()]*\.(connect|connect_ex|sendto))$"
)
_HERE = re.compile(r"^(localhost|127\.|::1$|0\.0\.0\.0|\[::1\]|https?://(localhost|127\.|\[::1\]))")


@code_rule(
    "network.reaches-out",
    "suspect",
    "product code connects to other machines in a task that has nothing to do with networks",
    "tasks whose own files use networks, and connections to the machine itself, are free",
)
def connects_to_network(code: ResolvedModule, context: TaskContext) -> Iterator[RuleFinding]:
    about = {
        "socket",
        "urllib.request",
        "http.client",
        "requests",
        "httpx",
        "aiohttp",
        "urllib3",
        "ftplib",
        "smtplib",
        "socketserver",
        "http.server",
        "ssl",
        "asyncio.streams",
        "logging.handlers",
        "multiprocessing.connection",
    }
    vsock = [
        (node, name)
        for node, name in code.references
        if name.endswith(("socket.AF_VSOCK", "socket.AF_NETLINK", "socket.AF_PACKET"))
    ]
    for node, name in vsock:
        yield RuleFinding(name, line=code.line_of(node), key=name)
    if context.imported_modules & about:
        return
    runs_what_it_gets = any(True for _ in calls_executing_read_text(code))
    for node, name in code.calls:
        here = any(_HERE.match(text) for text in code.constant_texts(node)) and not runs_what_it_gets
        if (
            NETWORK_CALL.match(name)
            and (not here or name.startswith("multiprocessing"))
            and not code.guarded_by_main(node)
        ):
            yield RuleFinding(name, line=code.line_of(node), key=name)
        elif name.endswith((".connect", ".connect_ex")) and (
            unix := [text for text in code.constant_texts(node) if re.match(r"/(var/)?run/|\S+\.sock$|\0", text)]
        ):
            yield RuleFinding(f"{name} to {unix[0]}", line=code.line_of(node), key="unix socket")


_OUTSIDE = frozenset(("AF_INET", "AF_INET6", "AF_VSOCK", "AF_PACKET", "AF_BLUETOOTH", "AF_XDP"))


@run_rule(
    "network.refused",
    "suspect",
    "a process of the attempt asked for a way out of the sandbox",
    "only sockets that lead outside the machine's own processes, and only where the reference's runs ask for none",
)
def network_call_refused(_submission: Submission, runs: Sequence[VerifierRun]) -> Iterator[RuleFinding]:
    families = {
        str(violation.args[0])
        for run in runs
        for violation in run.violations
        if violation.syscall == "socket" and violation.action != "logged" and violation.args
    }
    for family in sorted(families & _OUTSIDE):
        yield RuleFinding(f"socket of family {family}")
