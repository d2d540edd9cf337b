"""A Python module with its names resolved: what expressions refer to, what it calls, imports and writes.

`resolve` gives what an expression refers to, as a dotted name, through aliases, `getattr`, `__import__`, `sys.modules`
and the like. It follows assignments inside the module and no further.
"""

import ast
import builtins
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from gametape.syntax.constants import NotConstant, fold
from gametape.syntax.dotted_names import AttributeWrite, canonical_name, is_monkeypatch_call
from gametape.syntax.names import imports_of
from gametape.syntax.source import parse

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MOST_DEPTH = 24
_NOT_CONSTANT = object()
_PASSED_THROUGH = {"list", "tuple", "sorted", "iter", "reversed", "set", "next", "enumerate", "filter", "copy.copy"}


class ResolvedModule:
    """A parsed module. `line_of` counts in its file, also for a module that stands in a string of another."""

    def __init__(
        self, path: str, tree: ast.Module, first_line: int = 1, enclosing: "ResolvedModule | None" = None
    ) -> None:
        self.path, self.tree, self.enclosing = path, tree, enclosing
        self.siblings: list[ResolvedModule] = [self]
        """The modules of the same product, this one included."""
        self._first_line = first_line
        self._resolving: set[int] = set()
        self._known: dict[int, str | None] = {}
        self._folded: dict[ast.expr, Any] = {}
        self._texts: dict[tuple[ast.AST, int], list[str]] = {}
        self.nodes = list(ast.walk(tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self._functions: dict[ast.AST, FunctionNode | None] = {tree: None}
        for node in self.nodes:  # from the top down, so that parents come first
            if node is not tree and not isinstance(node, ast.expr_context):
                above = self.parents[node]
                self._functions[node] = above if isinstance(above, FunctionNode) else self._functions.get(above)
        self._bindings = self._collect()

    def line_of(self, node: ast.AST) -> int:
        return self._first_line if self.enclosing else max(1, getattr(node, "lineno", 1) + self._first_line - 1)

    # -- structure

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def enclosing_function(self, node: ast.AST) -> FunctionNode | None:
        return self._functions.get(node)

    def enclosing_scope(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module: where evidence is combined."""
        return self.enclosing_function(node) or self.tree

    def enclosing_named_function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        function = self.enclosing_function(node)
        while isinstance(function, ast.Lambda):
            function = self.enclosing_function(function)
        return function

    def guarded_by_main(self, node: ast.AST) -> bool:
        return id(node) in self._under_main

    @functools.cached_property
    def _under_main(self) -> set[int]:
        guards = [
            node for node in self.nodes if isinstance(node, ast.If) and "__main__" in self.constant_texts(node.test)
        ]
        return {id(inner) for guard in guards for child in guard.body for inner in ast.walk(child)}

    # -- names

    def _collect(self) -> dict[ast.AST, dict[str, list[ast.expr | str | None]]]:  # noqa: PLR0912 - a case for each form
        """By scope: what each name is bound to there. Text: a dotted name; None: something unknown."""
        bindings: dict[ast.AST, dict[str, list[ast.expr | str | None]]] = {}

        def bind(node: ast.AST, name: str, value: ast.expr | str | None) -> None:
            bindings.setdefault(self.enclosing_scope(node), {}).setdefault(name, []).append(value)

        for node in self.nodes:
            match node:
                case ast.Import() | ast.ImportFrom():
                    for imported in imports_of(node):
                        bind(node, imported.local, imported.origin)
                case ast.Assign():
                    for target in node.targets:
                        self._bind_target(target, node.value, node, bind)
                case ast.AnnAssign() if node.value:
                    self._bind_target(node.target, node.value, node, bind)
                case ast.AugAssign():
                    self._bind_target(node.target, None, node, bind)
                    self._bind_target(node.target, node.value, node, bind)
                case ast.NamedExpr():
                    bind(node, node.target.id, node.value)
                case ast.For() | ast.AsyncFor() | ast.comprehension():
                    for name in ast.walk(node.target):
                        if isinstance(name, ast.Name):
                            bind(node, name.id, ast.Starred(node.iter))
                case ast.withitem() if isinstance(node.optional_vars, ast.Name):
                    bind(node, node.optional_vars.id, node.context_expr)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    bind(node, node.name, None)
            if isinstance(node, FunctionNode):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                every += [extra for extra in (node.args.vararg, node.args.kwarg) if extra]
                for argument in every:
                    bindings.setdefault(node, {}).setdefault(argument.arg, []).append(None)
        return bindings

    def _bind_target(
        self, target: ast.expr, value: ast.expr | None, node: ast.AST, bind: Callable[[ast.AST, str, Any], None]
    ) -> None:
        if isinstance(target, ast.Name):
            bind(node, target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for index, part in enumerate(target.elts):
                same = len(parts) == len(target.elts)
                self._bind_target(part, parts[index] if same else None, node, bind)

    def bindings_of(self, node: ast.Name) -> list[ast.expr | str | None]:
        """What a name is bound to in the nearest scope that binds it."""
        scope = self.enclosing_function(node)
        while scope is not None:
            names = self._bindings.get(scope, {})
            if node.id in names:
                return names[node.id]
            scope = self.enclosing_function(scope)
        return self._bindings.get(self.tree, {}).get(node.id, [])

    def _single_binding(self, node: ast.Name) -> ast.expr | None:
        values = self.bindings_of(node)
        return values[0] if len(values) == 1 and isinstance(values[0], ast.expr) else None

    def fold(self, node: ast.expr) -> Any:
        """The constant an expression is, or raise `NotConstant`. Do not change it."""
        if node not in self._folded:
            try:
                self._folded[node] = fold(node, self._single_binding)
            except NotConstant:
                self._folded[node] = _NOT_CONSTANT
        value = self._folded[node]
        if value is _NOT_CONSTANT:
            raise NotConstant
        return value

    def folded_or_default(self, node: ast.expr | None, default: Any = None) -> Any:
        """The constant an expression is, or the default."""
        if node is None or self._folded.get(node) is _NOT_CONSTANT:
            return default
        try:
            return self.fold(node)
        except NotConstant:
            return default

    def text_of(self, node: ast.expr | None) -> str | None:
        value = self.folded_or_default(node)
        return value if isinstance(value, str) else None

    def constant_texts(self, node: ast.AST | None, depth: int = 3) -> list[str]:
        """The constant texts an expression is put together from, through names that stand for one expression."""
        if node is None:
            return []
        if (node, depth) not in self._texts:
            self._texts[node, depth] = self._constant_texts(node, depth)
        return [*self._texts[node, depth]]

    def _constant_texts(self, node: ast.AST, depth: int) -> list[str]:
        if isinstance(node, ast.expr):
            whole = self.folded_or_default(node)
            if isinstance(whole, str | bytes):
                return [whole if isinstance(whole, str) else whole.decode("latin-1")]
            if isinstance(whole, list | tuple | set):
                return [item for item in whole if isinstance(item, str)]
        if isinstance(node, ast.Name) and depth:
            values = [value for value in self.bindings_of(node) if isinstance(value, ast.expr)]
            return [text for value in values[:4] for text in self.constant_texts(value, depth - 1)]
        return [text for child in ast.iter_child_nodes(node) for text in self.constant_texts(child, depth)]

    def path_of(self, node: ast.expr | None) -> str:
        """An expression as a path, its constant pieces joined; what is not known leaves no trace."""
        return re.sub(r"/+", "/", "/".join(self.constant_texts(node)))

    def resolve(self, node: ast.AST | None) -> str | None:
        """What an expression refers to, or None."""
        if node is None or id(node) in self._resolving or len(self._resolving) > _MOST_DEPTH:
            return None
        if id(node) not in self._known:
            self._resolving.add(id(node))
            try:
                name = self._resolve(node)
            finally:
                self._resolving.discard(id(node))
            self._known[id(node)] = canonical_name(name) if name else None
        return self._known[id(node)]

    def _resolve(self, node: ast.AST) -> str | None:  # noqa: PLR0911 - a case for each form
        match node:
            case ast.Name():
                return self._resolve_name(node)
            case ast.Attribute():
                base = self.resolve(node.value)
                return base and f"{base}.{node.attr}"
            case ast.Subscript():
                return self._member(self.resolve(node.value), node.slice)
            case ast.Starred():
                base = self.resolve(node.value)
                return base and f"{base}[]"
            case ast.NamedExpr() | ast.Await():
                return self.resolve(node.value)
            case ast.IfExp():
                return self.resolve(node.body) or self.resolve(node.orelse)
            case ast.BoolOp():
                return next((name for value in node.values if (name := self.resolve(value))), None)
            case ast.Call():
                return self._resolve_call(node)
        return None

    def _resolve_name(self, node: ast.Name) -> str | None:
        values = self.bindings_of(node)
        if not values:
            if node.id == "__builtins__":
                return "builtins"
            return f"builtins.{node.id}" if hasattr(builtins, node.id) else None
        for value in values:
            target = value if isinstance(value, str) else self.resolve(value)
            if target:
                return target
        return None

    def _member(self, base: str | None, key: ast.expr) -> str | None:
        name = self.text_of(key)
        if base is None:
            return None
        if name is None:
            return f"{base}[]"
        if base == "sys.modules":
            return name
        if base == "<globals>":
            return self.resolve_global(name)
        if base.endswith(".__dict__"):
            return f"{base.removesuffix('.__dict__')}.{name}"
        return f"{base}.{name}" if base == "builtins" else f"{base}[{name}]"

    def resolve_global(self, name: str) -> str | None:
        values = self._bindings.get(self.tree, {}).get(name, [])
        target = next((value if isinstance(value, str) else self.resolve(value) for value in values if value), None)
        return target or ("builtins" if name == "__builtins__" else None)

    def _resolve_call(self, node: ast.Call) -> str | None:  # noqa: PLR0911 - a case for each form
        func = self.resolve(node.func)
        first = node.args[0] if node.args else None
        if func is None:
            return None
        name = func.removeprefix("builtins.")
        if name in ("getattr", "object.__getattribute__") or name.endswith(".__getattribute__"):
            attribute = self.text_of(node.args[-1 if "." in name else 1]) if len(node.args) > 1 else self.text_of(first)
            base = self.resolve(first) if len(node.args) > 1 else name.removesuffix(".__getattribute__")
            return base and (f"{base}.{attribute}" if attribute else f"{base}[]")
        if name in (
            "__import__",
            "importlib.import_module",
            "importlib.__import__",
            "pydoc.locate",
            "pkgutil.resolve_name",
        ):
            text = self.text_of(first)
            return text.replace(":", ".") if text else f"{func}()"
        if name in ("sys.modules.get", "sys.modules.__getitem__", "sys.modules.pop", "sys.modules.setdefault"):
            return self.text_of(first) or f"{func}()"
        if name in ("vars", "importlib.reload") and first is not None:
            base = self.resolve(first)
            return base and (f"{base}.__dict__" if name == "vars" else base)
        if name in ("globals", "locals", "vars"):
            return "<globals>"
        if name.endswith(".__dict__.get") or name == "<globals>.get":
            return self._member(name.removesuffix(".get"), first) if first is not None else None
        if name in _PASSED_THROUGH and first is not None:
            return self.resolve(node.args[-1] if name == "filter" else first)
        if name in ("functools.partial", "types.MethodType") and first is not None:
            return self.resolve(first)
        if isinstance(node.func, ast.Call) and name == "operator.attrgetter()" and first is not None:
            base, attribute = self.resolve(first), self.text_of(node.func.args[0]) if node.func.args else None
            return base and attribute and f"{base}.{attribute}"
        return f"{func}()"

    # -- what the text does

    @functools.cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """Every call whose function is known."""
        named_calls = ((node, self.resolve(node.func)) for node in self.nodes if isinstance(node, ast.Call))
        return [(node, name.removeprefix("builtins.")) for node, name in named_calls if name]

    @functools.cached_property
    def references(self) -> list[tuple[ast.expr, str]]:
        """Every expression that names something known, called or not; of a dotted name, the whole of it."""
        kinds = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
        return [
            (node, name)
            for node in self.nodes
            if isinstance(node, kinds)
            and not isinstance(self.parents.get(node), ast.Attribute)
            and (name := self.resolve(node))
        ]

    @functools.cached_property
    def imports(self) -> list[tuple[ast.AST, str]]:
        """Every module that is imported, whatever the way."""
        targets: list[tuple[ast.AST, str]] = []
        for node in self.nodes:
            targets += [(node, imported.target) for imported in imports_of(node)]
            if isinstance(node, ast.Call):
                name = (self.resolve(node.func) or "").removeprefix("builtins.")
                if (
                    name in ("__import__", "importlib.import_module")
                    and node.args
                    and (text := self.text_of(node.args[0]))
                ):
                    targets.append((node, text))
        return targets

    @functools.cached_property
    def writes(self) -> list[AttributeWrite]:
        """Every attribute or item that is set on something known."""
        attribute_writes: list[AttributeWrite] = []
        for node in self.nodes:
            if isinstance(node, ast.Assign | ast.Delete | ast.AugAssign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
                value = None if isinstance(node, ast.Delete) else node.value
                for target in targets:
                    for part in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                        attribute_writes += self._written(part, value, node)
            elif isinstance(node, ast.Call):
                attribute_writes += self._written_by_call(node)
        return attribute_writes

    def _written(self, target: ast.expr, value: ast.expr | None, node: ast.AST) -> Iterator[AttributeWrite]:
        if isinstance(target, ast.Attribute) and (base := self.resolve(target.value)):
            yield AttributeWrite(base, target.attr, value, node)
        elif isinstance(target, ast.Subscript) and (base := self.resolve(target.value)):
            item = not base.endswith(".__dict__") and base != "builtins"
            yield AttributeWrite(base.removesuffix(".__dict__"), self.text_of(target.slice), value, node, item)

    def _written_by_call(self, node: ast.Call) -> Iterator[AttributeWrite]:
        name = (self.resolve(node.func) or "").removeprefix("builtins.")
        arguments = node.args
        value = arguments[2] if len(arguments) > 2 else None
        if (
            name
            in (
                "setattr",
                "delattr",
                "object.__setattr__",
                "type.__setattr__",
                "operator.setitem",
            )
            or name.endswith(("patch.object", "monkeypatch.setattr", "MonkeyPatch().setattr"))
            or is_monkeypatch_call(node.func)
        ):
            if len(arguments) > 1 and (base := self.resolve(arguments[0])):
                yield AttributeWrite(base.removesuffix(".__dict__"), self.text_of(arguments[1]), value, node)
            elif arguments and (text := self.text_of(arguments[0])) and "." in text:
                yield AttributeWrite(text.rpartition(".")[0], text.rpartition(".")[2], value, node)
        elif name.endswith((".patch", "MonkeyPatch().setattr")) and "mock" in name and arguments:
            if (text := self.text_of(arguments[0])) and "." in text:
                replacement = arguments[1] if len(arguments) > 1 else None
                yield AttributeWrite(text.rpartition(".")[0], text.rpartition(".")[2], replacement, node)
        elif name.endswith((".__dict__.update", ".__dict__.__setitem__", ".__dict__.setdefault")):
            base = name.rsplit(".__dict__.", 1)[0]
            keys: list[str | None] = [word.arg for word in node.keywords if word.arg]
            if arguments and isinstance(arguments[0], ast.Dict):
                keys += [text for key in arguments[0].keys if (text := self.text_of(key))]
            elif arguments and (text := self.text_of(arguments[0])):
                keys.append(text)
            for key in keys or [None]:
                yield AttributeWrite(base, key, value, node)
        elif name.endswith((".__setattr__", ".__delattr__", ".__setitem__")) and arguments:
            yield AttributeWrite(
                name.rsplit(".", 1)[0].removesuffix(".__dict__"), self.text_of(arguments[0]), value, node
            )


def resolve_module(
    path: str, text: str, first_line: int = 1, enclosing: ResolvedModule | None = None
) -> ResolvedModule | None:
    """Read a text; None where it is not Python, too large or nested too deep to be read."""
    try:
        return ResolvedModule(path, parse(text, bounded=True), first_line, enclosing)
    except (SyntaxError, RecursionError):
        return None
