"""Cursors and limits are validated."""

import pytest

from opposable.domain.errors import BadInput

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("cursor", ["x", "中", "W10", "eyJhIjoxfQ", "WyIyMDI2LTAxLTAxIiwgImEiXQ"])
async def test_invalid_cursor_or_limit_is_reported(store, cursor):
    with pytest.raises(BadInput, match="The cursor is not valid"):
        await store.executions.list(after=cursor)
    with pytest.raises(BadInput, match="Pass a number from 1 to 1000"):
        await store.executions.list(limit=0)
