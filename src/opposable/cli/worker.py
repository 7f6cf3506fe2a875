"""The command `worker`: execute durable runs and batches."""

import asyncio
from typing import Annotated

import typer

from opposable.app.default_store import require_postgresql
from opposable.cli.function_files import review_changed_files
from opposable.cli.options import err
from opposable.cli.rendering import style_text
from opposable.cli.serve import ConfigOption, ModelsOption, load_config, open_models, read_service_settings
from opposable.domain.errors import BadInput


def worker(
    model: ModelsOption = None,
    config: ConfigOption = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1000, help="Runs at a time, the same for all workers")] = 20,
    drain: Annotated[int, typer.Option(min=0, max=86400, help="Seconds to wait for active runs at the end")] = 25,
) -> None:
    """Execute durable runs and batches from PostgreSQL.

    Start any number of workers with the same OPPOSABLE_DATABASE_URL, and the models or the configuration of the server.
    Ctrl-C drains and stops the worker.

    Example: opposable worker --model openai:gpt-5
    """
    try:
        from opposable.durable.worker import run_worker  # lazy: needs the extra "durable"
    except ModuleNotFoundError as error:
        raise BadInput(
            f'Workers need the extra "durable" ({error.name} is missing). Run: pip install "opposable[durable]".'
        ) from error
    from uvicorn.loops.auto import auto_loop_factory  # lazy: needs the extra "serve"

    from opposable.web.telemetry.logs import log_to_stderr  # lazy: needs the extra "serve"
    from opposable.web.telemetry.run_metering import meter_runs  # lazy: needs the extra "serve"

    review_changed_files()
    settings = read_service_settings()
    require_postgresql(settings)
    gateway_config = load_config(model, config)

    async def run() -> None:
        log_to_stderr(settings.log)
        async with open_models(settings, model or [settings.model], gateway_config) as models:
            await run_worker(
                settings,
                models,
                meter_runs,
                concurrency=concurrency,
                drain_seconds=drain,
                on_ready=lambda worker_id: err.print(style_text(f"Worker {worker_id} is ready.")),
            )

    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(run())
    err.print("Stopped.")
