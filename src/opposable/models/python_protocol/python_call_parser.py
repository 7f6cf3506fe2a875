"""A parser of calls in Python code; no code is executed."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

MAX_CALLS = 64
"""Calls parsed from one reply."""

_CONSTANTS = {"true": True, "false": False, "null": None}
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_MIN_NAME_SHARE = 0.6
"""The share of each part of an offered name that a shortened name must have."""
_NAME_PART_PATTERN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\x00-\x7f]+")
_NAME_REPAIR = "letters left out of the function's name"
_MAX_WRITTEN_NUMBER = 10**300
"""Numbers beyond this stay text: floats would be infinite, and Python refuses to format long integers."""
_MAX_COMPUTED_NUMBER = 10**9
"""Numbers beyond this are not computed with, to bound the memory."""


@dataclass(frozen=True, slots=True)
class CodeCall:
    """A call of an offered function: name, arguments, line (0 if unknown) and repairs."""

    name: str
    arguments: dict[str, Any]
    line: int = 0
    repairs: tuple[str, ...] = ()


class _ValuePending(Exception):
    """The value is the result of an offered function, which is not known yet."""


def parse_calls(code: str, parameters: Mapping[str, Sequence[str]], conversation: str = "") -> list[CodeCall] | None:
    """Return the calls of offered functions in `code` that need no result of another one.

    Variables, f-strings, arithmetic and loops over literal lists are evaluated. Backslashes stay as they are if the
    conversation contains the text so. The result is None if `code` is not valid Python.

    Args:
        code: The code.
        parameters: The parameter names of each offered function, in their order.
        conversation: The text of the conversation.
    """
    tree = _parse_tree(code)
    if tree is None:
        return None
    interpreter = _CodeInterpreter(parameters, code, conversation)
    try:
        interpreter.run_block(tree.body)
    except RecursionError:
        return None
    return interpreter.calls


def is_one_call(code: str) -> bool:
    """Return whether `code` is one call and nothing else."""
    match _parse_tree(code):
        case ast.Module(body=[ast.Expr(value=ast.Call())]):
            return True
    return False


def _parse_tree(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class _CodeInterpreter:
    """An interpreter of assignments, loops and calls that collects the calls."""

    def __init__(self, parameters: Mapping[str, Sequence[str]], code: str, conversation: str) -> None:
        self._code, self._conversation = code, conversation
        self.calls: list[CodeCall] = []
        self._parameters = parameters
        self._variables: dict[str, Any] = dict(_CONSTANTS)
        self._pending_variables: set[str] = set()

    def run_block(self, statements: Sequence[ast.stmt]) -> None:
        """Read statements in their order."""
        for statement in statements:
            if len(self.calls) >= MAX_CALLS:
                return
            self._run_statement(statement)

    def _run_statement(self, node: ast.stmt) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._run_assignment(name, value)
            case ast.For(target=ast.Name(id=name), iter=values, body=body):
                self._run_loop(name, values, body)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                for expression in _iter_expressions(node):
                    self._collect_calls(expression)
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.stmt):
                        self._run_statement(inner)

    def _run_assignment(self, name: str, value: ast.expr) -> None:
        self._pending_variables.discard(name)
        if self._collect_calls(value):
            self._variables.pop(name, None)
            self._pending_variables.add(name)
            return
        try:
            self._variables[name] = self._evaluate(value)
        except _ValuePending:
            self._pending_variables.add(name)

    def _run_loop(self, name: str, values: ast.expr, body: Sequence[ast.stmt]) -> None:
        try:
            items = self._evaluate(values)
        except _ValuePending:
            return
        for item in items if isinstance(items, list) else ():
            if len(self.calls) >= MAX_CALLS:
                return
            self._variables[name] = item
            self.run_block(body)

    def _collect_calls(self, node: ast.expr) -> bool:
        """Note the offered calls in an expression; whether there are any.

        One inside of another that was made before as it is brings nothing new: its result is there.
        """
        found = False
        for call in _iter_calls(node):
            name = _match_function(call, self._parameters)
            if name is None:
                continue
            found = True
            with suppress(_ValuePending):
                made = CodeCall(name, self._evaluate_arguments(name, call), call.lineno, _list_name_repairs(call, name))
                if call is node or not any((one.name, one.arguments) == (name, made.arguments) for one in self.calls):
                    self.calls.append(made)
        return found

    def _evaluate_arguments(self, name: str, call: ast.Call) -> dict[str, Any]:
        order = self._parameters[name]
        given: dict[str, Any] = {}
        for parameter, value in zip(order, call.args, strict=False):
            given[parameter] = self._evaluate(value, given)
        for keyword in call.keywords:
            value = self._evaluate(keyword.value, given)
            if keyword.arg is not None:
                given[keyword.arg] = value
            elif isinstance(value, dict):  # f(**{"x": 1})
                given.update({str(key): item for key, item in value.items()})
        if len(given) == 1 and len(call.args) == 1 and not call.keywords:
            [only] = given.values()
            if isinstance(only, dict) and only and all(key in order for key in only):  # f({"x": 1})
                return only
        return given

    def _evaluate(self, node: ast.expr, earlier_arguments: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression; its source text where it cannot be worked out.

        Raises: `_Pending`.
        """
        match node:
            case ast.Constant(value=str() as text):
                return self._restore_backslashes(node, text)
            case ast.Constant(value=int() | float() as number) if (
                not -_MAX_WRITTEN_NUMBER < number < _MAX_WRITTEN_NUMBER
            ):
                return ast.get_source_segment(self._code, node) or ""
            case ast.Constant(value=value):
                return value if isinstance(value, int | float | None) else _to_source(node)
            case ast.Name(id=name):
                return self._look_up_variable(name, earlier_arguments or {})
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self._evaluate(item, earlier_arguments) for item in items]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {
                    str(self._evaluate(key, earlier_arguments)): self._evaluate(value, earlier_arguments)
                    for key, value in pairs
                    if key
                }
            case ast.JoinedStr(values=values):
                return "".join(str(self._evaluate(value, earlier_arguments)) for value in values)
            case ast.FormattedValue(value=value):
                return self._evaluate(value, earlier_arguments)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._calculate(ast.Sub(), 0, self._evaluate(operand, earlier_arguments), node)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._evaluate(operand, earlier_arguments)
            case ast.BinOp(left=left, op=op, right=right):
                return self._calculate(
                    op, self._evaluate(left, earlier_arguments), self._evaluate(right, earlier_arguments), node
                )
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                return {each.arg: self._evaluate(each.value, earlier_arguments) for each in keywords if each.arg}
            case ast.Call() if any(_match_function(call, self._parameters) for call in _iter_calls(node)):
                raise _ValuePending
        return _to_source(node)

    def _restore_backslashes(self, node: ast.Constant, text: str) -> str:
        written = (ast.get_source_segment(self._code, node) or "").strip("'\"")
        return written if "\\" in written and text not in self._conversation and written in self._conversation else text

    def _look_up_variable(self, name: str, earlier_arguments: Mapping[str, Any]) -> Any:
        if name in earlier_arguments:
            return earlier_arguments[name]
        if name in self._pending_variables:
            raise _ValuePending
        return self._variables.get(name, name)

    def _calculate(self, op: ast.operator, left: Any, right: Any, node: ast.expr) -> Any:
        if isinstance(op, ast.Add) and isinstance(left, str) and isinstance(right, str):
            return left + right
        numbers = all(isinstance(side, int | float) and abs(side) <= _MAX_COMPUTED_NUMBER for side in (left, right))
        if not numbers or type(op) not in _OPERATORS or (isinstance(op, ast.Pow) and abs(right) > 16):
            return _to_source(node)
        try:
            value = _OPERATORS[type(op)](left, right)
        except (ArithmeticError, ValueError):
            return _to_source(node)
        return value if isinstance(value, int | float) else _to_source(node)


def _iter_expressions(node: ast.stmt) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child


def _iter_calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in an expression, inner ones first."""
    for child in ast.iter_child_nodes(node):
        yield from _iter_calls(child)
    if isinstance(node, ast.Call):
        yield node


def _match_function(call: ast.Call, parameters: Mapping[str, Sequence[str]]) -> str | None:
    """The offered function that is called, if any; `a.b(…)` may be meant for `a_b`.

    A name with letters left out is meant for the only one that has them and takes all the arguments, given by name.
    """
    written = _to_source(call.func)
    found = next((name for name in (written, written.replace(".", "_")) if name in parameters), None)
    if found or call.args or not call.keywords:
        return found
    names = {keyword.arg for keyword in call.keywords}
    meant = [name for name, order in parameters.items() if names <= set(order) and _is_shortened_name(written, name)]
    return meant[0] if len(meant) == 1 else None


def _list_name_repairs(call: ast.Call, name: str) -> tuple[str, ...]:
    return () if _to_source(call.func).replace(".", "_") == name.replace(".", "_") else (_NAME_REPAIR,)


def _to_source(node: ast.expr) -> str:
    """The expression as it may be written.

    "" where it holds a number too long for that.
    """
    try:
        return ast.unparse(node)
    except ValueError:
        return ""


def _is_shortened_name(short_name: str, name: str) -> bool:
    """Whether letters within the parts of a name were left out, each of which begins as it does.

    `lock` is not meant for `unlock`, nor `door_lock` for `door_unlock`.
    """
    cut, whole = (_NAME_PART_PATTERN.findall(each) for each in (short_name, name))
    return len(cut) == len(whole) and all(map(_is_shortened_part, cut, whole))


def _is_shortened_part(short_part: str, part: str) -> bool:
    letters = iter(part)
    same_ends = short_part[0] == part[0] and short_part[-1] == part[-1]
    return (
        same_ends and len(short_part) >= _MIN_NAME_SHARE * len(part) and all(letter in letters for letter in short_part)
    )
