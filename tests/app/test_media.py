"""Images and files that users name."""

from pathlib import Path

import pytest
from aiohttp import web

from opposable.app.media import create_user_message, inline_remote_media, load_media, load_media_from_url
from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import BadInput
from opposable.domain.messages import user_message

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@pytest.fixture
async def url():
    """A server with an image, a redirect to it and a text."""

    async def redirect(request):
        raise web.HTTPFound("/a.png")

    app = web.Application()
    app.router.add_get("/a.png", respond_image)
    app.router.add_get("/b.png", redirect)
    app.router.add_get("/c.png", respond_text)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def respond_image(request):
    return web.Response(body=PNG)


async def respond_text(request):
    return web.Response(body=b"text")


async def test_files_are_read_by_their_content(tmp_path):
    (tmp_path / "a.txt").write_bytes(PNG)
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7")
    message = await create_user_message("see", [str(tmp_path / "a.txt"), str(tmp_path / "b.pdf")])
    image, document = ImagePart("", PNG, "image/png"), FilePart("", b"%PDF-1.7", "application/pdf", "b.pdf")
    assert message == user_message("see", (TextPart("see"), image, document))
    assert await create_user_message("see", []) == user_message("see")


async def test_a_url_never_names_a_file_of_the_server(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    for source in (str(tmp_path / "a.png"), f"file://{tmp_path}/a.png"):
        with pytest.raises(BadInput, match="not a data URL"):
            await load_media_from_url(source)
    invoice = await load_media_from_url("data:application/pdf;base64,JVBERi0xLjc=", name="invoice.pdf")
    assert invoice == FilePart("", b"%PDF-1.7", "application/pdf", "invoice.pdf")


async def test_what_is_no_image_is_rejected(tmp_path):
    (tmp_path / "a.png").write_text("text")
    for source in (str(tmp_path / "a.png"), str(tmp_path / "none.png"), str(tmp_path), "data:image/png;base64,YQ=="):
        with pytest.raises(BadInput, match=r"a\.png|none\.png|Is a directory|data:image"):
            await load_media(source)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="it needs the device /dev/zero")
async def test_a_file_without_an_end_is_rejected():
    with pytest.raises(BadInput, match="is larger than"):
        await load_media("/dev/zero")


async def test_a_url_is_fetched_only_through_the_guard(url):
    assert await load_media(f"{url}/b.png", ["127.0.0.1"]) == ImagePart("", PNG, "image/png")
    with pytest.raises(BadInput, match="Cannot fetch"):
        await load_media(f"{url}/a.png")
    with pytest.raises(BadInput, match="HTTP 404"):
        await load_media(f"{url}/none.png", ["127.0.0.1"])
    with pytest.raises(BadInput, match="not an image"):
        await load_media(f"{url}/c.png", ["127.0.0.1"])


async def test_images_of_messages_are_fetched(url):
    remote = user_message("see", (TextPart("see"), ImagePart(f"{url}/a.png", detail="low")))
    [message] = await inline_remote_media([remote], ["127.0.0.1"])
    assert message.parts == (TextPart("see"), ImagePart("", PNG, "image/png", "low"))
    plain = user_message("text")
    assert (await inline_remote_media([plain]))[0] is plain
