"""The keys of MCP clients are checked against the store."""

import pytest

from opposable.app.default_store import open_default_store
from opposable.domain.specs import RateLimit
from opposable.settings import Settings
from opposable.store.keys import generate_key
from opposable.web.errors import ApiError
from opposable.web.mcp.stored_keys import open_key_check
from opposable.web.principal import OWNER

pytestmark = pytest.mark.anyio


async def test_scope_rate_limit_and_server_key_count(tmp_path):
    async with open_default_store(Settings(_env_file=None, home=tmp_path)) as store:
        async with open_key_check("", store) as check:
            assert check is None
        limited, limited_record = generate_key("limited", ("tools:write",), RateLimit(calls=1, seconds=600))
        chat, chat_record = generate_key("chat", ("chat",))
        await store.keys.add(limited_record)
        await store.keys.add(chat_record)
        async with open_key_check("of the server", store) as check:
            principals = [await check(key) for key in ("of the server", limited, "opp_wrong", "")]
            assert [principal and principal.key_id for principal in principals] == [
                "",
                limited_record.key_id,
                None,
                None,
            ]
            with pytest.raises(ApiError, match="tools:write") as missing_scope:
                await check(chat)
            with pytest.raises(ApiError, match="allows 1 requests") as too_many:
                await check(limited)
            assert (missing_scope.value.status, too_many.value.status) == (403, 429)


async def test_without_a_store_only_the_server_key_counts():
    async with open_key_check("", None) as check:
        assert check is None
    async with open_key_check("of the server", None) as check:
        assert [await check(key) for key in ("of the server", "other", "")] == [OWNER, None, None]
