"""The commands for API keys: make one, list them, revoke one."""

import asyncio
import re
from typing import Annotated, Any

import typer

from opposable.app.stored_tools import open_default_store
from opposable.cli.options import JsonOption, err, out, read_settings
from opposable.cli.rendering import render_table, style_text
from opposable.cli.rendering import to_json as shown_as_json
from opposable.domain.errors import BadInput
from opposable.domain.records import ApiKey
from opposable.domain.specs import RateLimit

cli = typer.Typer(help="The keys that clients of the service bear.", no_args_is_help=True)

SCOPES = ("chat", "tools:read", "tools:write", "admin")


@cli.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for, to know it by.")],
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", "-s", help=f"What it may do: {', '.join(SCOPES)}; may be given again. Default: chat."),
    ] = None,
    rate: Annotated[str, typer.Option(metavar="CALLS/SECONDS", help="How often it may ask, such as 60/60.")] = "",
    budget: Annotated[int | None, typer.Option(min=0, help="Tokens it may use in all.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key. It is shown now and never again.

    Example: opposable keys create "front end" --scope chat --rate 60/60
    """
    from opposable.store.keys import generate_key

    scopes = tuple(dict.fromkeys(scope or ["chat"]))
    unknown = [one for one in scopes if one not in SCOPES]
    if unknown:
        raise BadInput(f"There is no scope {unknown[0]!r}; the scopes are: {', '.join(SCOPES)}.")
    key, kept = generate_key(_validate_name(name), scopes, _parse_rate(rate), budget)

    async def work() -> None:
        async with open_default_store(read_settings()) as store:
            await store.keys.add(kept)

    asyncio.run(work())
    if as_json:
        print(shown_as_json({"key": key, **_to_json(kept)}))
        return
    print(key)
    err.print("This is the only time that the key is shown. Every request to the service needs a key from now on.")


@cli.command(name="list")
def list_keys(as_json: JsonOption = False) -> None:
    """The keys, newest first, without the keys themselves."""

    async def work() -> tuple[ApiKey, ...]:
        async with open_default_store(read_settings()) as store:
            return await store.keys.list()

    keys = asyncio.run(work())
    if as_json:
        print(shown_as_json({"keys": [_to_json(key) for key in keys]}))
        return
    columns = ("id", "key", "name", "scopes", "rate", "tokens used", "budget", "last used", "revoked")
    out.print(render_table(columns, [_to_row(key) for key in keys], limit=1000))


@cli.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The key's id, or the beginning of the key as it is listed.")],
) -> None:
    """Refuse a key from now on; services that run do within seconds."""

    async def work() -> str:
        async with open_default_store(read_settings()) as store:
            wanted = key.rstrip("…")
            found = [one for one in await store.keys.list() if one.revoked_at is None and _matches_key(one, wanted)]
            if len(found) != 1:
                raise BadInput(
                    f"{'No key' if not found else 'More than one key'} can be meant by {key!r}; give its id."
                )
            await store.keys.revoke(found[0].key_id)
            return found[0].name

    err.print(style_text(f"Revoked: {asyncio.run(work())}."))


def _matches_key(key: ApiKey, id_or_key: str) -> bool:
    return key.key_id == id_or_key or (len(id_or_key) >= len(key.prefix) and id_or_key.startswith(key.prefix))


def _validate_name(name: str) -> str:
    if not 1 <= len(name.strip()) <= 100:
        raise BadInput("A key's name has 1 to 100 characters.")
    return name.strip()


def _parse_rate(text: str) -> RateLimit | None:
    if not text:
        return None
    found = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,6})", text)
    if found is None:
        raise BadInput(f"{text!r} is no rate; give calls and seconds, such as 60/60.")
    return RateLimit(calls=int(found[1]), seconds=float(found[2]))


def _to_row(key: ApiKey) -> tuple[str, ...]:
    rate = "" if key.rate_limit is None else f"{key.rate_limit.calls}/{key.rate_limit.seconds:g}"
    budget = "" if key.token_budget is None else str(key.token_budget)
    used, revoked = (f"{at:%Y-%m-%d %H:%M}" if at is not None else "" for at in (key.last_used_at, key.revoked_at))
    about = (key.key_id, f"{key.prefix}…", key.name, " ".join(key.scopes), rate)
    return (*about, str(key.tokens_used), budget, used, revoked)


def _to_json(key: ApiKey) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "prefix": key.prefix,
        "name": key.name,
        "scopes": key.scopes,
        "rate_limit": None if key.rate_limit is None else key.rate_limit.model_dump(),
        "token_budget": key.token_budget,
        "tokens_used": key.tokens_used,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
    }
