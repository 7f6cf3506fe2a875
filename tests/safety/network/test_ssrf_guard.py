"""Tools reach no internal address, by any known bypass."""

import socket
from ipaddress import ip_address

import pytest
from aiohttp import web
from tests.safety.network.web_server import StubResolver, run_web_server

from opposable.domain.errors import BadInput, ToolRefused, ToolUnavailable
from opposable.safety.network.guarded_client import GuardedClient, HttpRequest, _build_redirect_request
from opposable.safety.network.ssrf_guard import SsrfGuard, parse_allowed_hosts
from opposable.safety.network.url_parsing import parse_url

pytestmark = pytest.mark.anyio

# {p} is the port of a server that listens on 127.0.0.1 and ::1 and would answer.
URL_CASES = [
    "file:///etc/passwd",
    "ftp://127.0.0.1:{p}/",
    "gopher://127.0.0.1:{p}/_GET",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "ws://127.0.0.1:{p}/",
    "unix:///var/run/docker.sock",
    "//127.0.0.1:{p}/",
    "127.0.0.1:{p}",
    "http:127.0.0.1:{p}/",
    "http:///127.0.0.1:{p}/",
    "http://127.0.0.1:{p}/",
    "https://127.0.0.1:{p}/",
    "HTTP://127.0.0.1:{p}/",
    "http://127.0.0.2:{p}/",
    "http://127.1:{p}/",
    "http://127.0.1:{p}/",
    "http://2130706433:{p}/",
    "http://0x7f000001:{p}/",
    "http://0x7f.0.0.1:{p}/",
    "http://0X7F.0x0.0x0.0x1:{p}/",
    "http://017700000001:{p}/",
    "http://0177.0.0.1:{p}/",
    "http://127.0.0.01:{p}/",
    "http://00000000127.0.0.1:{p}/",
    "http://4429718529:{p}/",
    "http://127.0.0.1.:{p}/",
    "http://127.0.0.1..:{p}/",
    "http://0:{p}/",
    "http://0.0.0.0:{p}/",
    "http://[::1]:{p}/",
    "http://[::]:{p}/",
    "http://[0:0:0:0:0:0:0:1]:{p}/",
    "http://[::ffff:127.0.0.1]:{p}/",
    "http://[::ffff:7f00:1]:{p}/",
    "http://[::127.0.0.1]:{p}/",
    "http://[64:ff9b::7f00:1]:{p}/",
    "http://[2002:7f00:1::]:{p}/",
    "http://[::1%25lo]:{p}/",
    "http://[::1%lo]:{p}/",
    "http://[fe80::1]:{p}/",
    "http://[127.0.0.1]:{p}/",
    "http://localhost:{p}/",
    "http://LOCALHOST:{p}/",
    "http://localhost.:{p}/",
    "http://foo.localhost:{p}/",
    "http://localhost.localdomain:{p}/",
    "http://printer.local:{p}/",
    "http://user@127.0.0.1:{p}/",
    "http://user:pass@127.0.0.1:{p}/",
    "http://example.com@127.0.0.1:{p}/",
    "http://example.com%40127.0.0.1:{p}/",
    "http://example.com:80@127.0.0.1:{p}/",
    "http://127.0.0.1:{p}\\@example.com/",
    "http://example.com\\@127.0.0.1:{p}/",
    "http://127.0.0.1%00.example.com:{p}/",
    "http://127.0.0.1\t:{p}/",
    "http://127.0.0\n.1:{p}/",
    "http://127.0.0.1 :{p}/",
    "http://127。0。0。1:{p}/",
    "http://127．0．0．1:{p}/",
    "http://１２７.0.0.1:{p}/",
    "http://①②⑦.⓪.⓪.①:{p}/",
    "http://٠x7f.0.0.1:{p}/",
    "http://ⓛocalhost:{p}/",
    "http://ｌｏｃａｌｈｏｓｔ:{p}/",
    "http://exa℀mple.com:{p}/",
    "http://%31%32%37.0.0.1:{p}/",
    "http://127.0.0.1%2f@example.com:{p}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://METADATA.google.internal./",
    "http://metadata/",
    "http://instance-data/latest/",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/latest/",
    "http://168.63.129.16/machine",
    "http://[fd00:ec2::254]/latest/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://kubernetes.default_schema.svc.cluster.local/",
    "http://example.com:22/",
    "http://example.com:6379/",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://example.com:８０/",
    "http://example.com:-1/",
    "http://example.com:+80/",
    "http://example..com/",
    "http://-example.com/",
    "http://exa mple.com/",
    "http://",
    "",
]


@pytest.fixture
async def server():
    async with run_web_server("::1") as server:
        yield server


@pytest.fixture
async def client():
    client = GuardedClient(resolver=StubResolver(["127.0.0.1"]))  # whatever name is left leads to the server
    yield client
    await client.aclose()


async def fetch(client: GuardedClient, url: str, redirects: int = 0) -> int:
    async with client.send(HttpRequest("GET", url, max_redirects=redirects, seconds=5)) as response:
        await response.read()
        return response.status


@pytest.mark.parametrize("vector", URL_CASES)
async def test_every_bypass_is_refused(vector, server, client):
    with pytest.raises(ToolRefused):
        await fetch(client, vector.replace("{p}", str(server.port)))
    assert server.seen == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://metadata.google.internal/",
        "http://127.0.0.2:{p}/",
        "http://2130706434:{p}/",
        "//127.0.0.2:{p}/",
        "http://[::1]:{p}/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "http://user@127.0.0.1:{p}/",
        "http://inner.example:{p}/",
    ],
)
async def test_a_redirect_is_checked_like_a_request(location, server):
    async def redirect(request):
        raise web.HTTPFound(location.replace("{p}", str(server.port)))

    server.answer = redirect
    client = GuardedClient([f"127.0.0.1:{server.port}"], resolver=StubResolver(["10.1.2.3"]))
    with pytest.raises(ToolRefused):
        await fetch(client, server.url, redirects=3)
    assert [seen.path for seen in server.seen] == ["/"]
    await client.aclose()


async def test_redirects_are_followed_only_up_to_the_requested_number(server):
    async def redirect(request):
        raise web.HTTPFound("/again")

    server.answer = redirect
    client = GuardedClient([server.host])
    assert await fetch(client, server.url) == 302
    with pytest.raises(ToolRefused, match="more than 2 times"):
        await fetch(client, server.url, redirects=2)
    assert len(server.seen) == 4
    await client.aclose()


async def test_credentials_do_not_follow_to_another_origin(server):
    async with run_web_server() as other:

        async def redirect(request):
            raise web.HTTPFound(f"{other.url}/there" if request.path == "/" else "/")

        server.answer = redirect
        client = GuardedClient([server.host, other.host])
        headers = {"Authorization": "Bearer sesame", "X-API-Key": "sesame", "Cookie": "id=sesame"}
        async with client.send(HttpRequest("GET", f"{server.url}/first", headers, max_redirects=3)) as response:
            assert response.status == 200
        assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer sesame"] * 2
        assert [seen.path for seen in other.seen] == ["/there"]
        assert "sesame" not in str(other.seen)

        async def keep_method(request):
            raise web.HTTPTemporaryRedirect(f"{other.url}/there")

        server.answer = keep_method
        with pytest.raises(ToolRefused, match="the request's body"):
            async with client.send(HttpRequest("POST", server.url, {}, b"secret", max_redirects=3)):
                pass
        assert len(other.seen) == 1
        await client.aclose()


@pytest.mark.parametrize(("method", "outcome_unknown"), [("GET", False), ("POST", True)])
async def test_a_redirected_request_may_have_had_an_effect(server, method, outcome_unknown):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        closed_host = f"127.0.0.1:{closed.getsockname()[1]}"

    async def redirect(request):
        raise web.HTTPSeeOther(f"http://{closed_host}/result")

    server.answer = redirect
    client = GuardedClient([server.host, closed_host])
    with pytest.raises(ToolUnavailable, match="cannot be reached") as caught:
        async with client.send(HttpRequest(method, f"{server.url}/orders", max_redirects=3)):
            pass
    assert caught.value.outcome_unknown == outcome_unknown
    with pytest.raises(ToolUnavailable) as caught:
        async with client.send(HttpRequest(method, f"http://{closed_host}/orders", max_redirects=3)):
            pass
    assert not caught.value.outcome_unknown
    await client.aclose()


def test_a_redirect_from_https_to_http_is_refused():
    with pytest.raises(ToolRefused, match="from https to plain http"):
        _build_redirect_request(
            HttpRequest("GET", "https://a.example"), 302, parse_url("https://a.example"), parse_url("http://a.example")
        )


async def test_a_name_is_resolved_and_checked_for_every_connection(server):
    resolver = StubResolver(["1.1.1.1"], ["127.0.0.1"])
    client = GuardedClient(resolver=resolver)
    url = f"http://rebinding.example:{server.port}/"
    assert client.guard.check_url(url).host == "rebinding.example"
    # the client connects to the public address, where no server answers
    with pytest.raises((ToolUnavailable, TimeoutError)):
        async with client.send(HttpRequest("GET", url, seconds=0.3, connect_seconds=0.2)):
            pass
    with pytest.raises(
        ToolRefused, match=r"rebinding.example leads to 127.0.0.1, a loopback address.*OPPOSABLE_PRIVATE_HOSTS"
    ):
        await fetch(client, url)
    assert server.seen == []
    await client.aclose()


@pytest.mark.parametrize(
    "addresses", [["1.1.1.1", "127.0.0.1"], ["127.0.0.1", "1.1.1.1"], ["::1"], ["::ffff:10.0.0.1"]]
)
async def test_one_internal_address_among_public_ones_is_refused(addresses, server):
    client = GuardedClient(resolver=StubResolver(addresses))
    with pytest.raises(ToolRefused):
        await fetch(client, f"http://mixed.example:{server.port}/")
    assert server.seen == []
    await client.aclose()


@pytest.mark.parametrize("allow", ["127.0.0.1", "127.0.0.1:{p}", "127.0.0.0/8", "inner.example", "inner.example:{p}"])
async def test_an_allowed_target_is_reached(allow, server):
    client = GuardedClient([allow.replace("{p}", str(server.port))], resolver=StubResolver(["127.0.0.1"]))
    host = "inner.example" if allow.startswith("inner") else "127.0.0.1"
    assert await fetch(client, f"http://{host}:{server.port}/x") == 200
    assert [seen.path for seen in server.seen] == ["/x"]
    await client.aclose()


@pytest.mark.parametrize("allow", ["127.0.0.1:1", "127.0.0.2", "10.0.0.0/8", "other.example", "inner.example:1"])
async def test_an_allowed_target_allows_no_other_target(allow, server):
    client = GuardedClient([allow], resolver=StubResolver(["127.0.0.1"]))
    for host in ("127.0.0.1", "inner.example"):
        with pytest.raises(ToolRefused):
            await fetch(client, f"http://{host}:{server.port}/")
    assert server.seen == []
    await client.aclose()


async def test_an_allowed_name_does_not_allow_the_metadata_address():
    client = GuardedClient(["inner.example", "metadata.google.internal"], resolver=StubResolver(["169.254.169.254"]))
    for host in ("inner.example", "metadata.google.internal"):
        with pytest.raises(ToolRefused, match="metadata address"):
            await fetch(client, f"http://{host}/")
    await client.aclose()


async def test_no_proxy_of_the_environment_is_used(server, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, server.url)
    client = GuardedClient([server.host], resolver=StubResolver(["10.0.0.1"]))
    with pytest.raises(ToolRefused):
        await fetch(client, "http://example.com/")
    assert server.seen == []
    await client.aclose()


async def test_no_cookie_is_stored_between_requests(server):
    async def cookie(request):
        response = web.Response(text="x")
        response.set_cookie("id", "1")
        return response

    server.answer = cookie
    client = GuardedClient(["cookies.example"], resolver=StubResolver(["127.0.0.1"]))
    assert [await fetch(client, f"http://cookies.example:{server.port}/") for _ in range(2)] == [200, 200]
    assert all("cookie" not in seen.headers for seen in server.seen)
    await client.aclose()


@pytest.mark.parametrize(
    ("text", "url", "host", "port"),
    [
        ("https://example.com", "https://example.com/", "example.com", 443),
        ("HTTP://EXAMPLE.com.:8080/a?b=1#c", "http://example.com:8080/a?b=1", "example.com", 8080),
        (
            "https://例子.测试/路径?问=答",
            "https://xn--fsqu00a.xn--0zwm56d/%E8%B7%AF%E5%BE%84?%E9%97%AE=%E7%AD%94",
            None,
            443,
        ),
        ("https://example.com/a%2Fb/%2e%2e/c", "https://example.com/a%2Fb/%2e%2e/c", "example.com", 443),
        ("https://example.com/a b", "https://example.com/a%20b", "example.com", 443),
        ("https://bücher.example/", "https://xn--bcher-kva.example/", None, 443),
        ("http://1.1.1.1:80/", "http://1.1.1.1/", "1.1.1.1", 80),
        ("http://[2606:4700:4700:0::1111]/", "http://[2606:4700:4700::1111]/", "2606:4700:4700::1111", 80),
    ],
)
def test_a_url_has_one_meaning(text, url, host, port):
    target = parse_url(text)
    assert (str(target.url), target.port) == (url, port)
    assert host is None or target.host == host
    assert parse_url(str(target.url)) == target


@pytest.mark.parametrize("entry", ["", "a.example:x", "a.example:70000", "a b", "10.0.0.0/99", "*"])
def test_an_invalid_entry_of_the_allow_list_is_an_error(entry):
    with pytest.raises(BadInput, match="is not a target"):
        SsrfGuard((entry,))


def test_a_url_in_the_allow_list_is_an_error_with_the_fix():
    with pytest.raises(BadInput, match=r"is a URL\. Write its host alone, as host or host:port\."):
        SsrfGuard(("http://a.example",))


def test_a_list_of_hosts_is_normalized():
    assert parse_allowed_hosts(["API.Example.com", "a.example:8080", "127.0.0.1:80"]) == (
        "api.example.com",
        "a.example:8080",
        "127.0.0.1:80",
    )
    with pytest.raises(BadInput, match="is a network"):
        parse_allowed_hosts(["10.0.0.0/8"])


class ChangingAddresses(list):
    """A resolver result that changes its address after the first iteration."""

    looks = 0

    def __iter__(self):
        self.looks += 1
        if self.looks == 1:
            return iter([{**self[0], "host": "1.1.1.1"}])
        return super().__iter__()


async def test_the_address_is_checked_again_before_connecting(server):
    class Resolver(StubResolver):
        async def resolve(self, host, port=0, family=0):
            return ChangingAddresses(await super().resolve(host, port, family))

    client = GuardedClient(resolver=Resolver(["127.0.0.1"]))
    with pytest.raises(ToolRefused, match=r"127\.0\.0\.1 is not an address that tools may reach"):
        await fetch(client, f"http://two.example:{server.port}/")
    assert server.seen == []
    await client.aclose()


@pytest.mark.parametrize(
    ("allow", "address", "may"),
    [
        ([], "1.1.1.1", True),
        ([], "127.0.0.1", False),
        ([], "169.254.169.254", False),
        (["127.0.0.1:80"], "127.0.0.1", True),
        (["127.0.0.1:81"], "127.0.0.1", False),
        (["inner.example"], "10.0.0.1", True),
        (["inner.example:81"], "10.0.0.1", False),
        (["inner.example"], "169.254.169.254", False),
        (["169.254.0.0/16"], "169.254.169.254", True),
        (["::1"], "127.0.0.1", False),
    ],
)
def test_which_addresses_can_be_connected_to(allow, address, may):
    assert SsrfGuard(tuple(allow)).can_connect(ip_address(address), 80) is may
