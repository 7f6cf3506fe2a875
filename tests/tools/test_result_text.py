"""The failures that a tool reports in its value."""

import pytest

from opposable.tools.library import ToolLibrary
from opposable.tools.result_text import find_failure_in_value


@pytest.mark.parametrize(
    ("value", "failed"),
    [
        ({"status": 422, "error": "branch must be one of CEN, RIV", "branch": "Riverside"}, True),
        ({"error": "not found"}, True),
        ({"error": {"code": 7, "message": "no"}, "code": "E7"}, True),
        ({"errors": [{"message": "no such field"}]}, True),
        ({"ok": False, "why": "closed"}, True),
        ({"success": False}, True),
        ({"status": 200, "error": "none of note"}, False),
        ({"error": "", "value": 3}, False),
        ({"error": 0.02, "mean": 1.5}, False),
        ({"error": None}, False),
        ({"success": True, "error": None}, False),
        ({"status": 404}, False),
        ([{"error": "no"}], False),
        ("error: no", False),
    ],
)
def test_a_body_that_reports_an_error_is_a_failure(value, failed):
    assert find_failure_in_value(value) == ("failed" if failed else None)


@pytest.mark.anyio
async def test_the_whole_body_of_a_failure_is_reported():
    def hold(branch: str) -> dict[str, object]:
        """Put a book on hold."""
        return {"status": 422, "error": "branch must be one of CEN, RIV"}

    result = await ToolLibrary([hold]).call("hold", {"branch": "Riverside"})
    assert (result.failure, result.data) == ("failed", None)
    assert result.content == '{"status":422,"error":"branch must be one of CEN, RIV"}'
