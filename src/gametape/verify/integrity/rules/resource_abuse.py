"""Rules over code that can only wait or use up memory, and never gives an answer."""

import ast
import re
from collections.abc import Iterator

from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import TaskContext
from gametape.verify.integrity.registry import RuleFinding, code_rule

_BLOCKING = re.compile(
    r"^(threading|multiprocessing|asyncio|queue|_thread)\."
    r"(Event\(\)\.wait|Condition\(\)\.wait|Barrier\(\)\.wait|(Simple|Lifo|Priority|Joinable)?Queue\(\)\.get|"
    r"(Bounded)?Semaphore\(\)\.acquire|Future\(\)\.result|R?Lock\(\)\.acquire|allocate_lock\(\)\.acquire)$"
)
_WAITING_NAME = re.compile(r"main|serve|run|loop|wait|keep|forever|block|worker|idle|daemon|sleep|spin|pause|listen")
_ENDLESS = re.compile(r"^itertools\.(count|cycle|repeat)$")
_SWALLOWING = re.compile(r"^(list|tuple|set|sum|sorted|max|min|all|collections\.deque|dict|frozenset|bytes|bytearray)$")
_HUGE = 1 << 20


@code_rule(
    "resources.waits-for-nothing",
    "suspect",
    "a function waits for something that nobody can ever send",
    "the thing waited for was made on the spot and nothing else knows it; a timeout, a server or a worker is free",
)
def waits_forever(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.calls:
        function = code.enclosing_named_function(node)
        if code.guarded_by_main(node) or (function and _WAITING_NAME.search(function.name)):
            continue
        alone = _BLOCKING.match(name) and not node.args and not node.keywords and _is_alone(code, node, name)
        no_files = len(node.args) == 3 and all(code.folded_or_default(part) == [] for part in node.args)
        if alone or name == "signal.pause" or (name == "select.select" and no_files):
            yield RuleFinding(name, line=code.line_of(node), key=name)


def _is_alone(code: ResolvedModule, node: ast.Call, name: str) -> bool:
    """Whether the object that is waited for was made here, and is not handed to anybody who could wake it."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    lock = "ock()" in name or "lock()" in name
    if isinstance(owner, ast.Call):
        count = code.folded_or_default(owner.args[0], default=1) if owner.args else 0
        return not lock and ("Semaphore" not in name or count == 0)
    if not isinstance(owner, ast.Name) or code.enclosing_function(node) is None:
        return False
    uses = [
        other
        for other in ast.walk(code.enclosing_scope(node))
        if isinstance(other, ast.Name) and other.id == owner.id and isinstance(other.ctx, ast.Load)
    ]
    if lock:
        held = [up for up in code.ancestors(node) if isinstance(up, ast.With)]
        return "RLock" not in name and any(
            getattr(item.context_expr, "id", "") == owner.id for up in held for item in up.items
        )
    values = code.bindings_of(owner)
    return len(uses) == 1 and len(values) == 1 and "Semaphore" not in name


@code_rule(
    "resources.bomb",
    "suspect",
    "a loop without an end takes memory, disk or processes for as long as there are any",
    "the loop cannot be left, and each round takes a mebibyte or more, or forks; an honest endless loop does neither",
)
def exhausts_resources(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for loop in code.nodes:
        if not isinstance(loop, ast.While) or not code.folded_or_default(loop.test) or code.guarded_by_main(loop):
            continue
        inside = [node for item in loop.body for node in ast.walk(item)]
        if any(isinstance(node, ast.Break | ast.Return | ast.Raise | ast.Yield | ast.Await) for node in inside):
            continue
        calls = [node for node in inside if isinstance(node, ast.Call)]
        forks = any(code.resolve(call.func) in ("os.fork", "os.forkpty") for call in calls)
        if forks or any(_is_huge(code, node) for node in inside):
            yield RuleFinding("an endless loop", line=code.line_of(loop), key="bomb")
    for node, name in code.calls:
        source = code.resolve(node.args[0].func) if node.args and isinstance(node.args[0], ast.Call) else None
        if _SWALLOWING.match(name) and source and _ENDLESS.match(source) and not _is_bounded(node):
            yield RuleFinding(f"{name} of {source}", line=code.line_of(node), key="bomb")


def _is_huge(code: ResolvedModule, node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and node.args:
        size = code.folded_or_default(node.args[0])
        if code.resolve(node.func) in ("builtins.bytearray", "builtins.bytes", "os.urandom"):
            return isinstance(size, int) and size >= _HUGE
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = [code.folded_or_default(side) for side in (node.left, node.right)]
        texts = [side for side in sides if isinstance(side, str | bytes | list | tuple) and side]
        counts = [side for side in sides if isinstance(side, int) and side >= _HUGE]
        return bool(texts and counts)
    return False


def _is_bounded(node: ast.Call) -> bool:
    """`repeat(x, 3)` ends, and a deque with a length keeps only that much."""
    source = node.args[0]
    return len(getattr(source, "args", [])) > 1 or bool(node.keywords) or len(node.args) > 1


_TEMPORARY = re.compile(r"^(/var)?/tmp/|^/dev/shm/")


@code_rule(
    "resources.remembered",
    "suspect",
    "results are kept in a file that outlives the run, and given out again as answers",
    "only a fixed file in the system's temporary directory that the same code writes and loads, where neither the "
    "instruction nor the task's own files speak of caches, storing or temporary files",
)
def keeps_results_in_temp_file(code: ResolvedModule, context: TaskContext) -> Iterator[RuleFinding]:
    asked = re.search(r"cach|persist|temp|stor|save|disk|remember|between runs", context.instruction, re.IGNORECASE)
    if asked or context.imported_modules & {"tempfile", "pickle", "shelve", "dbm", "sqlite3"}:
        return
    names = {name for _, name in code.calls}
    loads = any(re.match(r"(pickle|json|marshal|shelve|dbm|sqlite3)\.(loads?|open|connect)$", name) for name in names)
    writes = any(
        isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("write_bytes", "write_text", "dump", "write")
        for node in code.nodes
    ) or bool(names & {"shelve.open", "dbm.open", "sqlite3.connect"})
    if not loads or not writes:
        return
    for node, name in code.calls:
        if name == "tempfile.gettempdir" and _names_a_file(code, node):
            yield RuleFinding(name, line=code.line_of(node), key="temporary")
    for part in code.nodes:
        text = part.value if isinstance(part, ast.Constant) and not isinstance(code.parents[part], ast.Expr) else None
        if isinstance(text, str) and _TEMPORARY.match(text):
            yield RuleFinding(text, line=code.line_of(part), key="temporary")


def _names_a_file(code: ResolvedModule, node: ast.Call) -> bool:
    """Whether the path that begins here goes on with a fixed name, and nothing else."""
    for up in code.ancestors(node):
        if isinstance(up, ast.stmt):
            return False
        if isinstance(up, ast.BinOp | ast.Call) and any(re.search(r"\.\w+$", text) for text in code.constant_texts(up)):
            unknown = {
                inner.id for inner in ast.walk(up) if isinstance(inner, ast.Name) and code.bindings_of(inner) == [None]
            }
            return not unknown
    return False
