"""Calls in Python code that a model wrote, read without running any of it."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

MOST = 64
"""Calls that are read of one piece of code."""

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
_LEAST_LEFT = 0.6
"""How much of each part of an offered name must be there to be taken for it."""
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\x00-\x7f]+")
_NAME_MENDED = "letters left out of the function's name"
_LARGEST_WRITTEN = 10**300
"""Numbers beyond this are taken as text: as one, a decimal is infinite, and Python refuses to write long ones out."""
_LARGEST = 10**9
"""Numbers beyond this are not calculated with: what a model writes must not cost memory."""


@dataclass(frozen=True, slots=True)
class CodeCall:
    """A call of an offered function: its name, its arguments by name, its line (0: not known), what was mended."""

    name: str
    arguments: dict[str, Any]
    line: int = 0
    repairs: tuple[str, ...] = ()


class _Pending(Exception):
    """The value is the result of an offered function, which is not known yet."""


def calls_in(code: str, parameters: Mapping[str, Sequence[str]], said: str = "") -> list[CodeCall] | None:
    """The calls in `code` that can be made, as `made_and_waiting` has them; None where it is no Python."""
    found = made_and_waiting(code, parameters, said)
    return None if found is None else found[0]


def is_one_call(code: str) -> bool:
    """Whether `code` is a call and nothing else."""
    match _tree(code):
        case ast.Module(body=[ast.Expr(value=ast.Call())]):
            return True
    return False


def made_and_waiting(
    code: str, parameters: Mapping[str, Sequence[str]], said: str = ""
) -> tuple[list[CodeCall], list[CodeCall]] | None:
    """The calls of offered functions in `code`, in the order they would be made, and those that need another's result.

    There is nothing where it is no Python. `parameters` has each offered function's parameter names in their order. A text
    that stands in `said` as it was written, backslashes and all, is taken so: a Windows path copied from a request holds
    no line break. Variables, f-strings, sums and loops over literal lists are worked out. A call that needs the result of
    another has the arguments that need none: its time comes when the result is there.
    """
    tree = _tree(code)
    if tree is None:
        return None
    reading = _Reading(parameters, code, said)
    try:
        reading.block(tree.body)
    except RecursionError:
        return None
    return reading.calls, reading.waiting


def _tree(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class _Reading:
    """One piece of code being read: the variables known so far, and the calls found."""

    def __init__(self, parameters: Mapping[str, Sequence[str]], code: str, said: str) -> None:
        self._code, self._said = code, said
        self.calls: list[CodeCall] = []
        self.waiting: list[CodeCall] = []
        self._parameters = parameters
        self._known: dict[str, Any] = dict(_CONSTANTS)
        self._pending: set[str] = set()

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Read statements in their order."""
        for statement in body:
            if len(self.calls) >= MOST:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._assign(name, value)
            case ast.For(target=ast.Name(id=name), iter=values, body=body):
                self._loop(name, values, body)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                for expression in _expressions(node):
                    self._find(expression)
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.stmt):
                        self._statement(inner)

    def _assign(self, name: str, value: ast.expr) -> None:
        self._pending.discard(name)
        if self._find(value):
            self._known.pop(name, None)
            self._pending.add(name)
            return
        try:
            self._known[name] = self._value(value)
        except _Pending:
            self._pending.add(name)

    def _loop(self, name: str, values: ast.expr, body: Sequence[ast.stmt]) -> None:
        try:
            items = self._value(values)
        except _Pending:
            return
        for item in items if isinstance(items, list) else ():
            if len(self.calls) >= MOST:
                return
            self._known[name] = item
            self.block(body)

    def _find(self, node: ast.expr) -> bool:
        """Note the offered calls in an expression; whether there are any.

        One inside of another that was made before as it is brings nothing new: its result is there.
        """
        found = False
        for call in _calls(node):
            name = _offered(call, self._parameters)
            if name is None:
                continue
            found = True
            try:
                made = CodeCall(name, self._arguments(name, call), call.lineno, _name_repairs(call, name))
                if call is node or not any((one.name, one.arguments) == (name, made.arguments) for one in self.calls):
                    self.calls.append(made)
            except _Pending:
                self.waiting.append(CodeCall(name, self._known_of(name, call), call.lineno))
        return found

    def _known_of(self, name: str, call: ast.Call) -> dict[str, Any]:
        """The arguments of a call that need no result."""
        named = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
        known: dict[str, Any] = {}
        for parameter, value in (*zip(self._parameters[name], call.args, strict=False), *named):
            with suppress(_Pending):
                known[parameter] = self._value(value, known)
        return known

    def _arguments(self, name: str, call: ast.Call) -> dict[str, Any]:
        order = self._parameters[name]
        given: dict[str, Any] = {}
        for parameter, value in zip(order, call.args, strict=False):
            given[parameter] = self._value(value, given)
        for keyword in call.keywords:
            value = self._value(keyword.value, given)
            if keyword.arg is not None:
                given[keyword.arg] = value
            elif isinstance(value, dict):  # f(**{"x": 1})
                given.update({str(key): item for key, item in value.items()})
        if len(given) == 1 and len(call.args) == 1 and not call.keywords:
            [only] = given.values()
            if isinstance(only, dict) and only and all(key in order for key in only):  # f({"x": 1})
                return only
        return given

    def _value(self, node: ast.expr, said: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression; its source text where it cannot be worked out. Raises: `_Pending`."""
        match node:
            case ast.Constant(value=str() as text):
                return self._as_said(node, text)
            case ast.Constant(value=int() | float() as number) if not -_LARGEST_WRITTEN < number < _LARGEST_WRITTEN:
                return ast.get_source_segment(self._code, node) or ""
            case ast.Constant(value=value):
                return value if isinstance(value, int | float | None) else _source(node)
            case ast.Name(id=name):
                return self._variable(name, said or {})
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self._value(item, said) for item in items]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {str(self._value(key, said)): self._value(value, said) for key, value in pairs if key}
            case ast.JoinedStr(values=values):
                return "".join(str(self._value(value, said)) for value in values)
            case ast.FormattedValue(value=value):
                return self._value(value, said)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._calculated(ast.Sub(), 0, self._value(operand, said), node)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._value(operand, said)
            case ast.BinOp(left=left, op=op, right=right):
                return self._calculated(op, self._value(left, said), self._value(right, said), node)
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                return {each.arg: self._value(each.value, said) for each in keywords if each.arg}
            case ast.Call() if any(_offered(call, self._parameters) for call in _calls(node)):
                raise _Pending
        return _source(node)

    def _as_said(self, node: ast.Constant, text: str) -> str:
        written = (ast.get_source_segment(self._code, node) or "").strip("'\"")
        return written if "\\" in written and text not in self._said and written in self._said else text

    def _variable(self, name: str, said: Mapping[str, Any]) -> Any:
        if name in said:
            return said[name]
        if name in self._pending:
            raise _Pending
        return self._known.get(name, name)

    def _calculated(self, op: ast.operator, left: Any, right: Any, node: ast.expr) -> Any:
        if isinstance(op, ast.Add) and isinstance(left, str) and isinstance(right, str):
            return left + right
        numbers = all(isinstance(side, int | float) and abs(side) <= _LARGEST for side in (left, right))
        if not numbers or type(op) not in _OPERATORS or (isinstance(op, ast.Pow) and abs(right) > 16):
            return _source(node)
        try:
            value = _OPERATORS[type(op)](left, right)
        except (ArithmeticError, ValueError):
            return _source(node)
        return value if isinstance(value, int | float) else _source(node)


def _expressions(node: ast.stmt) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in an expression, inner ones first."""
    for child in ast.iter_child_nodes(node):
        yield from _calls(child)
    if isinstance(node, ast.Call):
        yield node


def _offered(call: ast.Call, parameters: Mapping[str, Sequence[str]]) -> str | None:
    """The offered function that is called, if any; `a.b(…)` may be meant for `a_b`.

    A name with letters left out is meant for the only one that has them and takes all the arguments, given by name.
    """
    written = _source(call.func)
    found = next((name for name in (written, written.replace(".", "_")) if name in parameters), None)
    if found or call.args or not call.keywords:
        return found
    names = {keyword.arg for keyword in call.keywords}
    meant = [name for name, order in parameters.items() if names <= set(order) and _is_cut_of(written, name)]
    return meant[0] if len(meant) == 1 else None


def _name_repairs(call: ast.Call, name: str) -> tuple[str, ...]:
    return () if _source(call.func).replace(".", "_") == name.replace(".", "_") else (_NAME_MENDED,)


def _source(node: ast.expr) -> str:
    """The expression as it may be written; "" where it holds a number too long for that."""
    try:
        return ast.unparse(node)
    except ValueError:
        return ""


def _is_cut_of(written: str, name: str) -> bool:
    """Whether letters within the parts of a name were left out, each of which begins as it does.

    `lock` is not meant for `unlock`, nor `door_lock` for `door_unlock`.
    """
    cut, whole = (_PART.findall(each) for each in (written, name))
    return len(cut) == len(whole) and all(map(_is_cut, cut, whole))


def _is_cut(written: str, part: str) -> bool:
    letters = iter(part)
    same_ends = written[0] == part[0] and written[-1] == part[-1]
    return same_ends and len(written) >= _LEAST_LEFT * len(part) and all(letter in letters for letter in written)
