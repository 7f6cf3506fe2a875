"""The commands for API keys: create, list, revoke."""

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from opposable.app.default_store import open_default_store
from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, err, out, parse_rate, read_settings
from opposable.cli.rendering import render_table, style_text, to_json
from opposable.cli.stored_records import SHORT_ID_CHARACTERS, fit_cell, format_minute, read_store, run_with_store
from opposable.domain.errors import BadInput
from opposable.domain.records import ApiKey
from opposable.web.principal import Scope

if TYPE_CHECKING:
    from opposable.store.store import Store

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)

SCOPES: tuple[str, ...] = get_args(Scope)


@cli.command()
def create(
    name: Annotated[str, typer.Argument(help="Description of the key")],
    scope: Annotated[
        list[str] | None, typer.Option("--scope", "-s", help=f"{', '.join(SCOPES)} (repeatable) (default: chat)")
    ] = None,
    rate: Annotated[str, typer.Option(metavar="CALLS/SECONDS", help="Rate limit, such as 60/60")] = "",
    budget: Annotated[int | None, typer.Option(min=0, help="Total token budget")] = None,
    as_json: JsonOption = False,
) -> None:
    """Create an API key. The key is shown only once.

    Example: opposable keys create "front end" --scope chat --rate 60/60
    """
    from opposable.store.keys import generate_key  # lazy: needs the extra "store"

    scopes = tuple(dict.fromkeys(scope or ["chat"]))
    unknown = [scope_name for scope_name in scopes if scope_name not in SCOPES]
    if unknown:
        raise BadInput(f"There is no scope {unknown[0]!r}. Use one of: {', '.join(SCOPES)}.")
    secret, record = generate_key(_validate_name(name), scopes, parse_rate(rate), budget)

    async def save() -> None:
        async with open_default_store(read_settings()) as store:
            await store.keys.add(record)

    run_async(save())
    if as_json:
        print(to_json({"key": secret, **_to_json(record)}))
        return
    print(secret)
    err.print("The key is shown only this once. From now on, every request to the service must carry a key.")


@cli.command(name="list")
def list_keys(as_json: JsonOption = False) -> None:
    """List the API keys, newest first, without their secrets.

    Example: opposable keys list
    """
    keys: tuple[ApiKey, ...] = read_store(lambda store: store.keys.list(), ())
    if as_json:
        print(to_json({"keys": [_to_json(key) for key in keys]}))
        return
    if not keys:
        out.print(style_text("No key is stored. The service accepts requests from this machine only."))
        return
    columns = ("id", "name", "scopes", "rate", "tokens", "last used")
    out.print(render_table(columns, [_to_row(key) for key in keys], limit=1000))


@cli.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Key, its id, or the first characters of either")],
    as_json: JsonOption = False,
) -> None:
    """Revoke an API key; running services reject it within seconds.

    Example: opposable keys revoke 3fa9c0d1
    """

    async def revoke_key(store: "Store") -> ApiKey:
        id_or_key = key.rstrip("…")
        active_keys = [candidate for candidate in await store.keys.list() if candidate.revoked_at is None]
        matching = [candidate for candidate in active_keys if _matches_key(candidate, id_or_key)]
        if len(matching) != 1:
            problem = "Several keys match" if matching else "No key matches"
            raise BadInput(f"{problem} {key!r}. Pass the id that `keys list` shows.")
        await store.keys.revoke(matching[0].key_id)
        return matching[0]

    revoked = run_with_store(revoke_key)
    if as_json:
        print(to_json({"key_id": revoked.key_id, "name": revoked.name}))
    else:
        err.print(style_text(f"Revoked: {revoked.name}."))


def _matches_key(key: ApiKey, id_or_key: str) -> bool:
    is_id = len(id_or_key) >= SHORT_ID_CHARACTERS and key.key_id.startswith(id_or_key)
    return is_id or (len(id_or_key) >= len(key.prefix) and id_or_key.startswith(key.prefix))


def _validate_name(name: str) -> str:
    if not 1 <= len(name.strip()) <= 100:
        raise BadInput(f"The description {name[:120]!r} is invalid. Use 1 to 100 characters.")
    return name.strip()


def _to_row(key: ApiKey) -> tuple[str, ...]:
    rate = "" if key.rate_limit is None else f"{key.rate_limit.calls}/{key.rate_limit.seconds:g}"
    tokens = str(key.tokens_used) if key.token_budget is None else f"{key.tokens_used} of {key.token_budget}"
    last_used = "revoked" if key.revoked_at is not None else format_minute(key.last_used_at)
    return (key.key_id[:SHORT_ID_CHARACTERS], fit_cell(key.name, 20), " ".join(key.scopes), rate, tokens, last_used)


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
