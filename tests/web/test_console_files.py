"""The files of the console: pages, headers, compression, the session cookie, and that they are up to date."""

import importlib.util
import re
from pathlib import Path

import pytest
from tests.web.api.asking import open_service_client

from opposable.web.console_files import CONSOLE_DIRECTORY, SESSION_COOKIE, list_console_files

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
CONSOLE_REQUEST = {"x-opposable-console": "1"}


def load_script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", ["/", "/chat", "/chat/abc.def", "/tools/calculator?tab=try", "/settings"])
async def test_every_page_is_served_without_a_key_and_without_inline_script(tmp_path, path):
    async with open_service_client(tmp_path) as ask:
        response = await ask("GET", path, key="")
        assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
        policy = response.headers["content-security-policy"]
        [nonce] = re.findall(r"style-src 'self' 'nonce-([\w-]+)'", policy)
        assert f'content="{nonce}"' in response.text
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert re.findall(r"<script(?![^>]* src=)", response.text) == []
        assert response.headers["x-frame-options"] == "DENY"
        other = await ask("GET", path, key="")
        assert nonce not in other.text


async def test_files_are_compressed_and_stored_by_browsers(tmp_path):
    async with open_service_client(tmp_path) as ask:
        page = (await ask("GET", "/", key="")).text
        [script] = re.findall(r'<script [^>]*src="([^"]+)"', page)
        plain = await ask("GET", script, key="", headers={"accept-encoding": "identity"})
        packed = await ask("GET", script, key="", headers={"accept-encoding": "gzip"})
        assert plain.headers["content-type"].startswith("text/javascript")
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.content == plain.content
        assert "immutable" in packed.headers["cache-control"]
        known = await ask("GET", script, key="", headers={"if-none-match": packed.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")


async def test_other_paths_need_a_key_and_stay_json(tmp_path):
    async with open_service_client(tmp_path) as ask:
        assert (await ask("GET", "/api/tools", key="")).status_code == 401
        missing = await ask("GET", "/assets/missing.js")
        assert (missing.status_code, missing.json()["error"]["kind"]) == (404, "not_found")
        assert (await ask("GET", "/../pyproject.toml")).status_code == 404
        assert (await ask("POST", "/chat", {})).status_code == 404


async def test_a_browser_gets_a_page_for_an_unknown_path(tmp_path):
    async with open_service_client(tmp_path) as ask:
        browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        page = await ask("GET", "/nowhere", key="", headers=browser)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert (await ask("GET", "/nowhere")).json()["error"]["kind"] == "not_found"
        assert (await ask("GET", "/api/tools/nothing", headers=browser)).json()["error"]["kind"] == "not_found"
        assert (await ask("GET", "/api/tools", key="", headers=browser)).status_code == 401


async def test_the_cookie_counts_only_for_requests_of_the_console(tmp_path):
    async with open_service_client(tmp_path) as ask:
        signed_in = await ask("POST", "/api/session")
        cookie = signed_in.headers["set-cookie"]
        assert cookie.startswith(f"{SESSION_COOKIE}=sesame;")
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        session = await ask.request_json("GET", "/api/session", key="", headers=CONSOLE_REQUEST)
        assert (session["name"], session["key_id"], session["has_key"]) == ("owner", "", True)
        assert session["models"] == ["m"]
        await ask.request_json("GET", "/api/session", key="", status=401)
        ask.client.cookies.set(SESSION_COOKIE, "wrong", domain="localhost.local", path="/")
        ask.client.cookies.clear()
        await ask.request_json("GET", "/api/session", key="", status=401, headers=CONSOLE_REQUEST)
        assert f'{SESSION_COOKIE}=""' in (await ask("DELETE", "/api/session")).headers["set-cookie"]


def test_the_built_console_is_that_of_the_sources():
    script = load_script("hash_console")
    assert script.HASH_FILE.read_text().strip() == script.compute_sources_hash(), "run `make console`"


def test_nothing_is_loaded_from_other_hosts():
    allowed = re.compile(rb"https?://(?:www\.w3\.org|localhost|127\.0\.0\.1|[\w.-]*example)")
    for name in list_console_files():
        if name.endswith((".html", ".css", ".svg")):
            content = (CONSOLE_DIRECTORY / name).read_bytes()
            foreign = [url for url in re.findall(rb"https?://[\w./-]+", content) if not allowed.match(url)]
            assert foreign == [], name
