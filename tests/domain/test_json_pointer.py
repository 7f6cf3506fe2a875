import pytest

from opposable.domain.json_pointer import resolve_pointer

DOCUMENT = {"$defs": {"a b": 1, "c/d": {"e~f": 2}}, "list": [10, {"x": 11}]}


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("#", DOCUMENT),
        ("#/$defs/a%20b", 1),
        ("#/$defs/c~1d/e~0f", 2),
        ("#/list/1/x", 11),
    ],
)
def test_a_local_reference_is_resolved(reference, value):
    assert resolve_pointer(DOCUMENT, reference) == value


@pytest.mark.parametrize("reference", ["other.json#/a", "#/none", "#/list/2", "#/list/-1", "#/list/x", "#/$defs/a b/c"])
def test_a_reference_that_leads_nowhere_is_an_error(reference):
    with pytest.raises(LookupError):
        resolve_pointer(DOCUMENT, reference)
