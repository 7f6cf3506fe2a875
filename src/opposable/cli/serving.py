"""The command that serves models."""

import asyncio
from typing import Annotated

import typer

from opposable import app
from opposable.cli.common import ModelOption, err, read_settings
from opposable.terminal import PullBar, styled


def serve(
    model: ModelOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8000,
    api_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="The environment variable with the key that clients must bear.")
    ] = "OPPOSABLE_SERVE_KEY",
) -> None:
    """Serve a model to any OpenAI client, with tool calls that work, until Ctrl-C.

    Example: opposable serve --model local
    """
    from opposable.web import server

    async def work() -> None:
        settings = read_settings()
        key = server.key_from(api_key_env)
        server.checked(host, key)
        with PullBar(err) as bar:
            opened = await app.ready_model(settings, model, bar)
        names = server.names_of(model or settings.model, opened)
        try:
            service = server.create_app(dict.fromkeys(names, opened), api_key=key)
            await server.serve(service, host, port, lambda url: err.print(styled(f"{names[0]} is served at {url}")))
        finally:
            await opened.aclose()
        err.print("Stopped.")

    with asyncio.Runner(loop_factory=server.new_loop()) as runner:
        runner.run(work())
