"""Errors that cross a process keep their type."""

import pytest

from opposable.domain.errors import (
    BadInput,
    ContextFull,
    ModelNotFound,
    ModelRejected,
    ModelUnavailable,
    OpposableError,
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
