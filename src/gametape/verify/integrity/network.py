"""Rules over code that reaches for other machines."""

import ast
import re
from collections.abc import Iterator

from gametape.verify.integrity.answers import runs_found_text
from gametape.verify.integrity.code import Code
from gametape.verify.integrity.exits import starts_a_process
from gametape.verify.integrity.rule import Finding, over_code
from gametape.verify.integrity.view import Setting

REACHING = re.compile(
    r"^(urllib\.request\.(urlopen|urlretrieve|build_opener)|http\.client\.HTTPS?Connection|requests\.(get|"
    r"post|put|request|Session|head)"
    r"|httpx\.(get|post|Client|AsyncClient|stream)|urllib3\.\w+|aiohttp\.\w+|ftplib\.FTP\w*|"
    r"smtplib\.SMTP\w*|telnetlib\.Telnet|xmlrpc\.client\.ServerProxy|paramiko\.\w+"
    r"|socket\.(create_connection|getaddrinfo|gethostbyname(_ex)?)|asyncio\.open_connection|"
    r"logging\.handlers\.(Datagram|Socket|SysLog|HTTP|SMTP)Handler|multiprocessing\.connection\.Client|"
    r"multiprocessing\.managers\.\w+\(\)\.connect|(socket\.socket|ssl\.\w+)\(\)[\w.()]*\.(connect|connect_ex|sendto))$"
)
COMMAND = re.compile(
    r"(^|[\s;&|/])(curl|wget|ssh|scp|sftp|ftp|nc|ncat|netcat|telnet|rsync|socat|aria2c|dig|nslookup)\s|/dev/(tcp|udp)/"
    r"|\b(pip3?|uv|poetry|conda|pipx|easy_install)\b.*\b(install|download|add|wheel)\b|\bnpm (install|i|"
    r"add)\b|\bapt(-get)? install\b"
    r"|\bgit\s+(-\S+\s+)*(clone|fetch|pull|push|ls-remote|remote add|submodule update)\b"
)
_HERE = re.compile(r"^(localhost|127\.|::1$|0\.0\.0\.0|\[::1\]|https?://(localhost|127\.|\[::1\]))")


@over_code(
    "network.reaches-out",
    "suspect",
    "product code connects to other machines in a task that has nothing to do with networks",
    "tasks whose own files use networks, and connections to the machine itself, are free",
)
def reaches_out(code: Code, setting: Setting) -> Iterator[Finding]:
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
        yield Finding(name, line=code.line_of(node), key=name)
    if setting.uses & about:
        return
    runs_what_it_gets = any(True for _ in runs_found_text(code))
    for node, name in code.calls:
        here = any(_HERE.match(text) for text in code.texts(node)) and not runs_what_it_gets
        if REACHING.match(name) and (not here or name.startswith("multiprocessing")) and not code.guarded_by_main(node):
            yield Finding(name, line=code.line_of(node), key=name)
        elif name.endswith((".connect", ".connect_ex")) and (
            unix := [text for text in code.texts(node) if re.match(r"/(var/)?run/|\S+\.sock$|\0", text)]
        ):
            yield Finding(f"{name} to {unix[0]}", line=code.line_of(node), key="unix socket")


@over_code(
    "network.commands",
    "suspect",
    "product code runs a program that downloads",
    "only downloading programs and installers, started from product code that the task itself does not start",
)
def commands(code: Code, _setting: Setting) -> Iterator[Finding]:
    for node, name in code.calls:
        texts = [" ".join(code.texts(node))]
        texts += [
            " ".join(text for part in argument.elts for text in code.texts(part))
            for argument in node.args
            if isinstance(argument, ast.List | ast.Tuple)
        ]
        if starts_a_process(name):
            for text in texts:
                if found := COMMAND.search(text + " "):
                    yield Finding(found.group().strip(), line=code.line_of(node), key="command")
                    break
        elif re.match(
            r"pip\.(main|_internal\.(main|cli\.main\.main))$|ensurepip\.bootstrap$|runpy\.run_module$", name
        ) and (name != "runpy.run_module" or "pip" in code.texts(node)):
            yield Finding(name, line=code.line_of(node), key="pip")
