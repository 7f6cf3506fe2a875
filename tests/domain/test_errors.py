"""Errors that cross a process keep their type."""

import pickle

import pytest

from opposable.domain.errors import (
    BadInput,
    ContextFull,
    FieldProblem,
    InvalidArguments,
    ModelNotFound,
    ModelRejected,
    ModelUnavailable,
    OpposableError,
    ToolUnavailable,
    error_from_kind,
    error_from_name,
    get_error_kind,
)


@pytest.mark.parametrize("error", [BadInput("x"), ModelUnavailable("x"), ModelNotFound("x"), ModelRejected("x")])
def test_an_error_is_restored_from_its_kind_and_message(error):
    restored = error_from_kind(get_error_kind(error), str(error))
    assert (type(restored), str(restored)) == (type(error), "x")


def test_an_error_is_restored_from_its_name():
    assert type(error_from_name("ContextFull", "x")) is ContextFull
    assert type(error_from_kind("unheard_of", "x")) is type(error_from_name("Unheard", "x")) is OpposableError


@pytest.mark.parametrize(
    "error", [InvalidArguments((FieldProblem("a", "is required"),)), ToolUnavailable("x", retry_after=2.0)]
)
def test_an_error_of_a_tool_is_pickled_with_its_attributes(error):
    restored = pickle.loads(pickle.dumps(error))
    assert (type(restored), str(restored), vars(restored)) == (type(error), str(error), vars(error))
