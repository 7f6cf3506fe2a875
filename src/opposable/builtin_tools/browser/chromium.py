"""Discovery and launch of Chromium for the browser tool."""

import os
import shutil
from pathlib import Path
from typing import Any

from opposable.domain.errors import ToolUnavailable

_EXECUTABLE_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_LAUNCH_ARGUMENTS = (
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # no traffic bypasses the proxy
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # only the proxy resolves names
    "--disable-background-networking",
    "--disable-component-update",
)
INSTALL_HINT = (
    "The browser tool needs a Chromium. One of these brings it: apt-get install chromium-headless-shell (Debian),"
    " playwright install --with-deps chromium-headless-shell, or an installed Chrome."
)


async def launch_chromium(playwright: Any, executable: str, proxy_url: str) -> Any:
    """Launch a headless Chromium.

    Raises:
        ToolUnavailable: No Chromium is installed, or it does not start.
    """
    from playwright.async_api import Error

    path = executable or _find_executable(playwright)
    if not path:
        raise ToolUnavailable(INSTALL_HINT)
    try:
        return await playwright.chromium.launch(
            executable_path=path,
            headless=True,
            args=list(_LAUNCH_ARGUMENTS),
            proxy={"server": proxy_url},
            chromium_sandbox=os.geteuid() != 0,  # Chromium's own sandbox does not start as root
        )
    except Error as error:
        first_line = (error.message.strip().splitlines() or ["no reason was given"])[0]
        raise ToolUnavailable(f"The browser {path} does not start: {first_line[:300]}") from error


def _find_executable(playwright: Any) -> str:
    """Return the path of Playwright's Chromium if it is installed, otherwise the system's, or ""."""
    playwright_path = Path(playwright.chromium.executable_path)
    if playwright_path.is_file():
        return str(playwright_path)
    return next((path for name in _EXECUTABLE_NAMES if (path := shutil.which(name))), "")
