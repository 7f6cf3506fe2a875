"""Several processes that serve on one socket: begun, watched, begun again where one dies, ended together."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Protocol

from opposable.domain.errors import OpposableError

SHUTDOWN_SECONDS = 15.0
"""Seconds that workers have to end."""
RESTART_DELAY_SECONDS = 1.0
"""Seconds before a worker that died is begun again."""


class WorkerTarget(Protocol):
    """What a worker does: importable, so that another process can begin it."""

    def __call__(self, listening_socket: socket.socket, on_ready: Callable[[], None]) -> None:
        """Serve until SIGTERM; `ready` is called when it serves."""
        ...


def run_workers(
    target: WorkerTarget, listening_socket: socket.socket, count: int, on_ready: Callable[[], None]
) -> None:
    """Have `count` processes do the work until SIGINT or SIGTERM; `on_ready` is called when all serve.

    One that dies is begun again. Raises: `OpposableError` where one cannot begin.
    """
    context = multiprocessing.get_context("spawn")
    with _capture_stop_signals() as stopped:
        workers: list[SpawnProcess] = []
        try:
            begun = [_start_worker(context, target, listening_socket) for _ in range(count)]
            workers = [worker for worker, _ in begun]
            for worker, told in begun:
                _wait_until_ready(worker, told, stopped)
            if not stopped:
                on_ready()
            while not stopped:
                wait([worker.sentinel for worker in workers], timeout=0.2)
                for n, worker in enumerate(workers):
                    if not worker.is_alive() and not stopped:
                        time.sleep(RESTART_DELAY_SECONDS)
                        workers[n], _ = _start_worker(context, target, listening_socket)
        finally:
            _stop_workers(workers)


def _start_worker(
    context: "multiprocessing.context.SpawnContext", target: WorkerTarget, listening_socket: socket.socket
) -> tuple[SpawnProcess, Connection]:
    told, tell = context.Pipe(duplex=False)
    worker = context.Process(target=_worker_main, args=(target, listening_socket, tell))
    worker.start()
    tell.close()
    return worker, told


def _wait_until_ready(worker: SpawnProcess, connection: Connection, stopped: list[int]) -> None:
    while not stopped:
        if connection.poll(0.1):
            try:
                said = connection.recv()
            except EOFError:
                said = "A worker ended before it served."
            if said:
                raise OpposableError(said)
            return


def _worker_main(target: WorkerTarget, listening_socket: socket.socket, connection: Connection) -> None:
    """In the worker: work, until it is told to stop or its parent is gone."""
    os.setsid()  # Ctrl-C is the parent's to hear
    parent = multiprocessing.parent_process()
    assert parent is not None

    def ready() -> None:
        _exit_with_parent(parent.sentinel)
        connection.send("")

    try:
        target(listening_socket, ready)
    except OpposableError as error:
        with contextlib.suppress(OSError):
            connection.send(str(error))
        raise SystemExit(1) from None


def _exit_with_parent(parent_sentinel: int) -> None:
    """Stop when the parent is gone: nobody would begin or end this process any more."""
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(parent_sentinel)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(parent_sentinel, gone)


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
    """A list that is no longer empty once the process was told to stop."""
    stopped: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: stopped.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
