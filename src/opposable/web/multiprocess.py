"""A supervisor of the worker processes that serve on one socket.

uvicorn has a supervisor too. This one also reports why a worker cannot start, says when all workers are ready, stops
workers whose parent was killed, and kills workers that do not stop in time.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Protocol

from prometheus_client.multiprocess import mark_process_dead

from opposable.domain.errors import OpposableError
from opposable.service.stop_signals import get_stop_signals
from opposable.web.telemetry.metrics import DIRECTORY_VARIABLE

SHUTDOWN_SECONDS = 15.0
"""Seconds that workers have to stop before they are killed."""
RESTART_DELAY_SECONDS = 1.0
"""Seconds before a dead worker is restarted."""


class WorkerTarget(Protocol):
    """The work of one process.

    It must be importable, so that a new process can run it.
    """

    def __call__(self, listening_socket: socket.socket, on_ready: Callable[[], None]) -> None:
        """Serve until SIGTERM, and call `on_ready` once requests are accepted."""
        ...


def run_workers(
    target: WorkerTarget, listening_socket: socket.socket, count: int, on_ready: Callable[[], None]
) -> None:
    """Run `target` in `count` processes until SIGINT, SIGTERM or SIGHUP.

    Processes that die are restarted.

    Args:
        target: The work of each process.
        listening_socket: The socket that the processes share.
        count: The number of processes.
        on_ready: Called once all processes serve.

    Raises:
        OpposableError: If a worker cannot start.
    """
    context = multiprocessing.get_context("spawn")
    with _share_metrics(), _capture_stop_signals() as stop_signals:
        workers: list[SpawnProcess] = []
        try:
            started = [_start_worker(context, target, listening_socket) for _ in range(count)]
            workers = [worker for worker, _ in started]
            for _, connection in started:
                _wait_until_ready(connection, stop_signals)
            if not stop_signals:
                on_ready()
            while not stop_signals:
                wait([worker.sentinel for worker in workers], timeout=0.2)
                for index, worker in enumerate(workers):
                    if not worker.is_alive() and not stop_signals:
                        mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
                        time.sleep(RESTART_DELAY_SECONDS)
                        workers[index], _ = _start_worker(context, target, listening_socket)
        finally:
            listening_socket.close()  # else clients wait for a connection that no worker accepts
            _stop_workers(workers)


@contextlib.contextmanager
def _share_metrics() -> Iterator[None]:
    """Give the processes a directory for their metrics, unless the user has set one."""
    if DIRECTORY_VARIABLE in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="opposable-metrics-") as directory:
        os.environ[DIRECTORY_VARIABLE] = directory
        try:
            yield
        finally:
            del os.environ[DIRECTORY_VARIABLE]


def _start_worker(
    context: "multiprocessing.context.SpawnContext", target: WorkerTarget, listening_socket: socket.socket
) -> tuple[SpawnProcess, Connection]:
    """Start a process.

    The connection receives "" once it serves, or the message of its error.
    """
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_worker_main, args=(target, listening_socket, sender))
    worker.start()
    sender.close()
    return worker, receiver


def _wait_until_ready(connection: Connection, stop_signals: list[int]) -> None:
    while not stop_signals:
        if connection.poll(0.1):
            try:
                error_message = connection.recv()
            except EOFError:
                error_message = "A worker process ended before it was ready. Its log above has the reason."
            if error_message:
                raise OpposableError(error_message)
            return


def _worker_main(target: WorkerTarget, listening_socket: socket.socket, connection: Connection) -> None:
    """Run the target in this worker process."""
    os.setsid()  # only the parent reacts to Ctrl-C
    parent = multiprocessing.parent_process()
    assert parent is not None

    def on_ready() -> None:
        _exit_with_parent(parent.sentinel)
        with contextlib.suppress(OSError):  # the supervisor does not wait for a restarted worker
            connection.send("")

    try:
        target(listening_socket, on_ready)
    except OpposableError as error:
        with contextlib.suppress(OSError):
            connection.send(str(error))
        raise SystemExit(1) from None


def _exit_with_parent(parent_sentinel: int) -> None:
    """Stop this process when its parent dies."""
    loop = asyncio.get_running_loop()

    def on_parent_exit() -> None:
        loop.remove_reader(parent_sentinel)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(parent_sentinel, on_parent_exit)


def _stop_workers(workers: list[SpawnProcess]) -> None:
    for worker in workers:
        if worker.is_alive():
            worker.terminate()
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()


@contextlib.contextmanager
def _capture_stop_signals() -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a list while the block runs."""
    stop_signals: list[int] = []
    previous_handlers = {
        number: signal.signal(number, lambda number, frame: stop_signals.append(number))
        for number in get_stop_signals()
    }
    try:
        yield stop_signals
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
