"""Parser and evaluator of arithmetic in human notation ("25 × 4", "15% of 80", "mean([1,2,3])").

The tokens are translated to a Python expression, which `ast` parses and `_Evaluator` computes with bounded decimals.
It does not use `eval`: tokens and evaluator know numbers, operators and functions alone.
"""

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, Inexact, getcontext
from difflib import get_close_matches
from itertools import pairwise

from opposable.builtin_tools.calculator.functions import (
    CONSTANTS,
    FUNCTION_ALIASES,
    FUNCTIONS,
    STATISTICS,
    add,
    floor_divide,
    modulo,
    power,
    use_bounded_context,
)
from opposable.builtin_tools.calculator.tokenizer import ExpressionToken, build_syntax_error, tokenize_expression
from opposable.domain.errors import InvalidArguments, ToolRefused

_MAX_EXPRESSION_CHARACTERS = 2000
_MAX_DEPTH = 40
_MAX_FUNCTION_NUMBERS = 50_000  # limits the work of long lists in long expressions
_END = ExpressionToken("operator", "", False)
_LIST_NAMES = ("numbers", "data", "values", "list")
_CLOSING_BRACKETS = {"(": ")", "[": "]"}
_PYTHON_OPERATORS = {"√": "~", "!": " .factorial", "of": "@", "mod": "%"}
_BINARY_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: add,
    ast.Sub: lambda left, right: add(left, -right),
    ast.Mult: operator.mul,
    ast.MatMult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: floor_divide,
    ast.Mod: modulo,
    ast.Pow: power,
}


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Value of an expression.

    Attributes:
        value: One number, or several.
        is_exact: Whether no digits were rounded away.
        functions: The names of the functions used.
    """

    value: Decimal | list[Decimal]
    is_exact: bool
    functions: frozenset[str]


def evaluate(expression: str, numbers: list[Decimal] | None = None, is_list: bool = False) -> EvaluationResult:
    """Evaluate an expression.

    Args:
        expression: The expression. The names `numbers`, `data` and `values` refer to `numbers`.
        numbers: Numbers that the expression may use.
        is_list: Whether a comma always separates numbers. Otherwise it may separate thousands ("1,234 + 1").

    Raises:
        InvalidArguments: The expression is not valid.
        ToolRefused: It is too long, too deep or too large.
        ToolFailed: It has no result.
    """
    if len(expression) > _MAX_EXPRESSION_CHARACTERS:
        raise ToolRefused(
            f"The expression is too long: at most {_MAX_EXPRESSION_CHARACTERS} characters; give long lists as numbers."
        )
    tokens = tokenize_expression(expression, is_list=is_list)
    with use_bounded_context() as context:
        evaluator = _Evaluator(expression, numbers or [])
        try:
            value = evaluator.evaluate(ast.parse(evaluator.translate(tokens), mode="eval").body)
        except SyntaxError as error:
            raise build_syntax_error(
                expression, "a number is missing, or an operator is in the wrong place; give something like 25 * 4"
            ) from error
        except (RecursionError, MemoryError) as error:
            raise ToolRefused(f"The expression is nested too deeply: at most {_MAX_DEPTH} levels.") from error
        return EvaluationResult(value, not context.flags[Inexact], frozenset(evaluator.functions))


_Value = Decimal | list[Decimal]


class _Evaluator:
    """Translate tokens to a Python expression, and evaluate its syntax tree.

    Python's precedence serves as ours: `√x` is written `~x`, `x!` and `x%` are attributes, `15% of 80` is `@`, and a
    function without brackets is a power: `2 * sqrt 16` is `2 * sqrt ** 16`.
    """

    def __init__(self, expression: str, numbers: list[Decimal]) -> None:
        self.functions: set[str] = set()
        self._expression = expression
        self._values: dict[str, _Value] = {"numbers": numbers}
        self._function_numbers = 0

    def translate(self, tokens: list[ExpressionToken]) -> str:
        """Write tokens as a Python expression. Numbers become names, so that no digit is lost."""
        parts: list[str] = []
        open_brackets: list[str] = []
        ends_operand = False  # whether the tokens so far end with a value
        prefix_count = 0  # signs, roots, brackets and functions in a row
        previous = _END
        for token, following in pairwise([*tokens, _END]):
            if ends_operand and token.starts_operand and token.kind != "number":
                parts.append("*")  # 2(3 + 4), 2 pi
            if token.kind == "number":
                parts.append(self._store_number(token.text))
                ends_operand = True
            elif token.kind == "word":
                name = self._resolve_name(token.text)
                has_arguments = following.starts_operand or following.text in ("-", "of")
                is_operand = name not in FUNCTIONS or (previous.text == "of" and not has_arguments)
                if not is_operand and not has_arguments:
                    raise self._build_error(f"{token.text} needs numbers, such as {token.text}(16)")
                parts.append(name if is_operand or following.text == "(" else f"{name}**")
                ends_operand = is_operand
            elif not _is_superfluous(token, previous):
                self._check_bracket(token.text, open_brackets)
                is_percent = token.text == "%" and not _is_modulo(token, following)
                parts.append(" .percent" if is_percent else _PYTHON_OPERATORS.get(token.text, token.text))
                ends_operand = is_percent or token.text in (")", "]", "!")
            previous = token
            prefix_count = 0 if ends_operand else prefix_count + 1
            if prefix_count > 2 * _MAX_DEPTH:
                raise ToolRefused(f"The expression is nested too deeply: at most {_MAX_DEPTH} levels.")
        if open_brackets:
            raise self._build_error(f"a {open_brackets[-1]!r} is missing")
        return " ".join(parts)

    def _check_bracket(self, text: str, open_brackets: list[str]) -> None:
        """Keep the closing brackets that are still needed, and check a closing one."""
        if closing_bracket := _CLOSING_BRACKETS.get(text):
            open_brackets.append(closing_bracket)
            if len(open_brackets) > _MAX_DEPTH:
                raise ToolRefused(f"The expression is nested too deeply: at most {_MAX_DEPTH} levels.")
        elif text in _CLOSING_BRACKETS.values():
            if not open_brackets:
                raise self._build_error(f"{text!r} is not expected here")
            if (expected := open_brackets.pop()) != text:
                raise self._build_error(f"a {expected!r} is missing")

    def _store_number(self, digits: str) -> str:
        name = f"_{len(self._values)}"
        self._values[name] = +Decimal(digits)
        return name

    def _resolve_name(self, word: str) -> str:
        if word in _LIST_NAMES and self._values["numbers"]:
            return "numbers"
        if word in CONSTANTS:
            return word
        if word not in FUNCTION_ALIASES:
            raise self._build_error(_describe_unknown_name(word))
        return FUNCTION_ALIASES[word]

    def evaluate(self, node: ast.expr) -> _Value:
        """Return the value of a syntax tree."""
        match node:
            case ast.Tuple(elts=items):
                values = self._evaluate_items(items)
                return values[0] if len(values) == 1 else _flatten(values)
            case ast.List(elts=items):
                return _flatten(self._evaluate_items(items))
            case ast.Name(id=name) if name in CONSTANTS:
                getcontext().flags[Inexact] = True
                return CONSTANTS[name]
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.Call(func=ast.Name(id=name), args=items, keywords=[]):
                return self._call_function(name, items)
            case ast.BinOp(left=ast.Name(id=name), op=ast.Pow(), right=operand) if name in FUNCTIONS:
                return self._call_function(name, [operand])
            case ast.BinOp(left=operand, op=ast.MatMult(), right=ast.Name(id=name)) if name in FUNCTIONS:
                return self._call_function(name, [operand])
            case ast.BinOp():
                return self._evaluate_operators(node)
            case ast.Attribute(value=operand, attr="factorial"):
                return self._call_function("factorial", [operand])
            case ast.Attribute(value=operand):
                return self._evaluate_number(operand) / 100
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._call_function("sqrt", [operand])
            case ast.UnaryOp(op=sign, operand=operand):
                value = self._evaluate_number(operand)
                return -value if isinstance(sign, ast.USub) else value
        raise SyntaxError

    def _evaluate_operators(self, node: ast.expr) -> Decimal:
        """Return the value of a chain of binary operators, however long, without recursion into its left side."""
        operations: list[ast.BinOp] = []
        while isinstance(node, ast.BinOp) and not _is_application(node):
            operations.append(node)
            node = node.left
        value = self._evaluate_number(node)
        for operation in reversed(operations):
            right = self._evaluate_number(operation.right)
            is_sum = isinstance(operation.op, (ast.Add, ast.Sub))
            if is_sum and isinstance(operation.right, ast.Attribute) and operation.right.attr == "percent":
                right = value * right  # 200 + 10% is 220, as on pocket calculators
            value = _BINARY_OPERATORS[type(operation.op)](value, right)
        return value

    def _evaluate_number(self, node: ast.expr) -> Decimal:
        value = self.evaluate(node)
        if isinstance(value, list):
            raise self._build_error("a list appears where one number is needed; use mean, sum, max, min … of the list")
        return value

    def _evaluate_items(self, nodes: list[ast.expr]) -> list[_Value]:
        """Return the values of expressions with commas between them.

        A function without brackets takes all that follow: in "average of 1, 2, and 3" it takes three.
        """
        values: list[_Value] = []
        for index, node in enumerate(nodes):
            application = _find_open_application(node)
            if application is not None and (others := nodes[index + 1 :]):
                if any(isinstance(other, ast.BinOp) for other in others):
                    raise self._build_error("put brackets around the numbers of the function, as in sum(1, 2) + 3")
                application.right = ast.Tuple([application.right, *others])
            values.append(self.evaluate(node))
            if application is not None:
                break
        return values

    def _call_function(self, name: str, arguments: list[ast.expr]) -> Decimal:
        function = FUNCTIONS[name]
        numbers = _flatten(self._evaluate_items(arguments))
        self._function_numbers += len(numbers)
        if self._function_numbers > _MAX_FUNCTION_NUMBERS:
            raise ToolRefused("The expression is too long: too many numbers.")
        most = function.max_arguments or len(numbers)
        if not function.min_arguments <= len(numbers) <= most:
            raise self._build_error(f"{name} needs {describe_arity(name)}, {len(numbers)} given")
        self.functions.add(name)
        return function.compute(numbers)

    def _build_error(self, problem: str) -> InvalidArguments:
        return build_syntax_error(self._expression, problem)


def _flatten(values: list[_Value]) -> list[Decimal]:
    return [number for value in values for number in (value if isinstance(value, list) else [value])]


def _is_superfluous(token: ExpressionToken, previous: ExpressionToken) -> bool:
    """Return whether a token says nothing: "of" after a function, a comma after a comma."""
    return token.text == previous.text == "," or (
        token.text == "of" and previous.kind == "word" and previous.text in FUNCTION_ALIASES
    )


def _is_modulo(sign: ExpressionToken, following: ExpressionToken) -> bool:
    """Return whether % is the remainder: "7 % 3" is, "15% of 80" is a percentage."""
    return following.starts_operand or (sign.has_leading_space and following.text == "-")


def _is_application(node: ast.BinOp) -> bool:
    """Return whether a node applies a function without brackets, before its operand or (in Chinese) after it."""
    match node:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Pow()) | ast.BinOp(op=ast.MatMult(), right=ast.Name(id=name)):
            return name in FUNCTIONS
    return False


def _find_open_application(node: ast.expr) -> ast.BinOp | None:
    """Return the function of several numbers, without brackets, at the end of an expression."""
    while isinstance(node, (ast.BinOp, ast.UnaryOp)):
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node.left, ast.Name) and _is_application(node) and FUNCTIONS[node.left.id].max_arguments != 1:
            return node
        else:
            node = node.right
    return None


def describe_arity(name: str) -> str:
    """Return how many numbers a function takes, for messages."""
    function = FUNCTIONS[name]
    if function.max_arguments is None:
        return f"at least {function.min_arguments} number{'s' * (function.min_arguments > 1)}"
    if function.min_arguments == function.max_arguments:
        return f"{function.min_arguments} number{'s' * (function.min_arguments > 1)}"
    return f"{function.min_arguments} to {function.max_arguments} numbers"


def _describe_unknown_name(word: str) -> str:
    similar_names = get_close_matches(word, [*FUNCTION_ALIASES, *CONSTANTS], n=3)
    suggestions = ", ".join(similar_names or [*STATISTICS, "sqrt", "round", "log"])
    return f"{word!r} is not known; {'did you mean' if similar_names else 'use'} {suggestions}"
