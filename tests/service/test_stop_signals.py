"""The signals that stop a process of the service."""

import signal
import sys

import pytest

from opposable.service.stop_signals import get_stop_signals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")


@pytest.mark.parametrize(("handler", "is_stopped"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_process_that_ignores_sighup_is_not_stopped_by_it(handler, is_stopped):
    earlier = signal.signal(signal.SIGHUP, handler)
    try:
        assert (signal.SIGHUP in get_stop_signals()) is is_stopped
    finally:
        signal.signal(signal.SIGHUP, earlier)
