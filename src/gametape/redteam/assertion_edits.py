"""Edits of test files, as transformers of their syntax: in pytest's way of asserting and in unittest's."""

import ast

from gametape.syntax.definitions import FunctionNode
from gametape.syntax.expected_calls import EQUALITY_METHODS
from gametape.syntax.source import parse_expression


class AssertionRemover(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.copy_location(ast.Assert(test=ast.Constant(True)), node)

    def visit_With(self, node: ast.With) -> ast.AST:
        if "raises" in ast.unparse(node.items[0]).lower():
            return ast.Pass()
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`self.assertEqual(a, b)` compares nothing any more."""
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assert"):
            return ast.Constant(None)
        self.generic_visit(node)
        return node


class ExpectationRewriter(ast.NodeTransformer):
    """What was expected becomes what the hollow function returns."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return ast.Compare(left=node.left, ops=[ast.NotEq()], comparators=[ast.Call(ast.Name("object"), [], [])])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return rewrite_assertion(node, "assertNotEqual", ast.Call(ast.Name("object"), [], []))


class ToleranceWidener(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        loose = parse_expression("__import__('pytest').approx(0.0, rel=1e9, abs=1e12)")
        return ast.Compare(left=node.left, ops=[ast.Eq()], comparators=[loose])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The last keyword of a call counts."""
        self.generic_visit(node)
        if ast.unparse(node.func).endswith(("isclose", "approx", "assertAlmostEqual")):
            name = (
                "delta"
                if "Almost" in ast.unparse(node.func)
                else "abs"
                if "approx" in ast.unparse(node.func)
                else "abs_tol"
            )
            others = [keyword for keyword in node.keywords if keyword.arg not in (name, "places")]
            node.keywords = [*others, ast.keyword(name, ast.Constant(1e12))]
        return rewrite_assertion(node, "assertAlmostEqual", ast.Constant(0.0), ast.keyword("delta", ast.Constant(1e12)))


def rewrite_assertion(node: ast.Call, name: str, expected: ast.expr, *more: ast.keyword) -> ast.AST:
    """A comparison of unittest with something else than it had; any other call as it is."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr in EQUALITY_METHODS and len(node.args) > 1):
        return node
    return ast.Call(ast.Attribute(node.func.value, name), [node.args[0], expected], [*more])


class ExceptionSwallower(ast.NodeTransformer):
    def visit_FunctionDef(self, node: FunctionNode) -> ast.AST:
        if node.name.startswith("test"):
            handler = ast.ExceptHandler(type=ast.Name("Exception"), name=None, body=[ast.Pass()])
            plain = ast.ExceptHandler(type=ast.Name("BaseException"), name=None, body=[ast.Pass()])
            node.body = [ast.Try(body=node.body, handlers=[handler, plain], orelse=[], finalbody=[])]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef
