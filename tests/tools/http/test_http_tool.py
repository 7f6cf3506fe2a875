"""An endpoint as a tool: the right bytes go out, and the answer has no secrets."""

import asyncio
import base64
import contextlib
import json
import re
from urllib.parse import quote

import pytest
from aiohttp import web
from pydantic import ValidationError

from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.errors import (
    InvalidArguments,
    ToolFailed,
    ToolRefused,
    ToolRegistrationError,
    ToolUnavailable,
)
from opposable.domain.specs import HttpToolSpec
from opposable.safety.network.guarded_client import GuardedClient, HttpRequest
from opposable.tools.http.http_tool import HttpTool, get_internal_tool_name
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

KEY = "sk-Sesame+öffne/dich=42"
LOWER_CASE_KEY = re.sub("%..", lambda octet: octet[0].lower(), quote(KEY))
ENVIRON = {"KEY": KEY, "USER": "ann", "PASSWORD": 's3cret, "quoted"', "EMPTY": " ", "BROKEN": "a\r\nx: y"}


def create_schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
ANY: dict = {}


@pytest.fixture
def make(server, client):
    def make(path="/", method="GET", parameters=None, transform=None, mode="invokable", environ=ENVIRON, **endpoint):
        spec = HttpToolSpec(
            tool_id="shop.item",
            description="An item.",
            mode=mode,
            parameters=parameters or {"type": "object", "properties": {}},
            endpoint={"url_template": server.url + path, "method": method, **endpoint},
            response_transform=transform or {},
        )
        return HttpTool(spec, client, environ)

    return make


def set_answer(server, body, status=200, content_type="application/json", **headers):
    async def answer(request):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(body=raw, status=status, headers={"content-type": content_type, **headers})

    server.answer = answer


# What goes out.


@pytest.mark.parametrize(
    ("path", "schema", "endpoint", "arguments", "sent"),
    [
        ("/items/{id}", {"id": TEXT}, {}, {"id": "a b/c?d#e%2f&中"}, "/items/a%20b%2Fc%3Fd%23e%252f%26%E4%B8%AD"),
        ("/v{n}/{a}-{b}.json", {"n": ANY, "a": TEXT, "b": TEXT}, {}, {"n": 2, "a": "..", "b": ""}, "/v2/..-.json"),
        ("/中/a", {}, {}, {}, "/%E4%B8%AD/a"),
        ("/x?q={q}&lang={l}&fixed=1", {"q": TEXT, "l": TEXT}, {}, {"q": "a&b=c"}, "/x?q=a%26b%3Dc&fixed=1"),
        (
            "/x",
            {"q": TEXT, "n": ANY, "b": ANY, "z": ANY},
            {},
            {"q": "a b", "n": 1.5, "b": True, "z": None},
            "/x?q=a%20b&n=1.5&b=true",
        ),
        ("/x?a=1", {"q": TEXTS}, {}, {"q": ["x", "y&z"]}, "/x?a=1&q=x&q=y%26z"),
        (
            "/x",
            {"q": TEXTS},
            {"places": {"q": {"place": "query", "name": "ids[]", "explode": False}}},
            {"q": ["x", "y"]},
            "/x?ids%5B%5D=x,y",
        ),
        (
            "/x",
            {"q": TEXTS},
            {"places": {"q": {"place": "query", "style": "pipeDelimited"}}},
            {"q": ["x", "y"]},
            "/x?q=x%7Cy",
        ),
        (
            "/x",
            {"q": TEXTS},
            {"places": {"q": {"place": "query", "style": "spaceDelimited"}}},
            {"q": ["x", "y"]},
            "/x?q=x%20y",
        ),
        (
            "/x",
            {"q": ANY},
            {"places": {"q": {"place": "query", "style": "deepObject"}}},
            {"q": {"a": 1, "b": ["x", "y"]}},
            "/x?q%5Ba%5D=1&q%5Bb%5D%5B%5D=x&q%5Bb%5D%5B%5D=y",
        ),
        (
            "/x",
            {"q": ANY},
            {"places": {"q": {"place": "query", "style": "json"}}},
            {"q": {"a": [1]}},
            "/x?q=%7B%22a%22%3A%5B1%5D%7D",
        ),
        ("/x", {"q": ANY}, {}, {"q": {"a": 1, "b": "c"}}, "/x?a=1&b=c"),
        ("/x/{q}", {"q": TEXTS}, {}, {"q": ["a", "b"]}, "/x/a,b"),
        ("/x", {"q": {"type": "integer", "default": 10}}, {}, {}, "/x"),
        ("/x", {"q": {"type": "integer", "default": 10}}, {"defaults": True}, {}, "/x?q=10"),
        ("/x/{q}", {"q": {"type": "integer", "default": 10}}, {}, {}, "/x/10"),
        ("", {}, {}, {}, "/"),
        ("?a={a}", {"a": TEXT}, {}, {"a": "1"}, "/?a=1"),
    ],
)
async def test_arguments_fill_the_url(server, make, path, schema, endpoint, arguments, sent):
    tool = make(path, parameters=create_schema(**schema), **endpoint)
    assert await tool.run(tool.check(arguments), NO_CONTEXT) == {"ok": True}
    assert [seen.path for seen in server.seen] == [sent]


async def test_a_body_has_the_fields_of_the_call_alone(server, make):
    schema = create_schema(name=TEXT, status={"type": "string", "default": "active"})
    tool = make("/x", parameters=schema, method="PATCH")
    await tool.run(tool.check({"name": "Ann"}), NO_CONTEXT)
    assert [json.loads(seen.body) for seen in server.seen] == [{"name": "Ann"}]


@pytest.mark.parametrize("value", ["", ".", "..", "../admin", "a/../b", "a\\..\\b", "./x", "/..", "\ud800"])
async def test_a_value_that_would_change_the_path_is_refused(server, make, value):
    tool = make("/items/{id}/x", parameters=create_schema(id=TEXT))
    with pytest.raises(InvalidArguments):
        await tool.run({"id": value}, NO_CONTEXT)
    assert server.seen == []


async def test_headers_cookies_and_fixed_headers_are_sent(server, make):
    tool = make(
        "/x",
        parameters=create_schema(trace=TEXT, session=TEXT, odd=TEXT, many=TEXTS),
        headers={"X-Fixed": "yes", "X-Secret": "env:KEY", "Authorization": "Token env:KEY"},
        places={
            "trace": {"place": "header", "name": "X-Trace"},
            "many": {"place": "header", "name": "X-Many"},
            "session": "cookie",
            "odd": {"place": "cookie", "name": "$id!"},
        },
    )
    await tool.run({"trace": "中 1", "session": "a;b=c", "odd": "1", "many": ["x", "y"]}, NO_CONTEXT)
    [seen] = server.seen
    assert {name: seen.headers[name] for name in ("x-fixed", "x-trace", "x-many", "cookie")} == {
        "x-fixed": "yes",
        "x-trace": "中 1",
        "x-many": "x,y",
        "cookie": "session=a%3Bb%3Dc; $id!=1",
    }
    assert (seen.headers["x-secret"], seen.headers["authorization"]) == (KEY, f"Token {KEY}")


@pytest.mark.parametrize(
    ("method", "headers", "key", "sent"),
    [
        ("POST", {}, "k-1", "k-1"),
        ("DELETE", {}, "k-1", "k-1"),
        ("GET", {}, "k-1", None),
        ("POST", {}, "", None),
        ("POST", {"Idempotency-Key": "own"}, "k-1", "own"),
        ("POST", {}, "a\r\nX-Evil: 1", None),
        ("POST", {}, "键", None),
    ],
)
async def test_methods_that_change_something_send_the_idempotency_key(server, make, method, headers, key, sent):
    await make("/x", method=method, headers=headers).run({}, CallContext(idempotency_key=key))
    [seen] = server.seen
    assert (seen.headers.get("idempotency-key"), "x-evil" in seen.headers) == (sent, False)


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"])
async def test_a_line_break_in_a_header_is_refused(server, make, value):
    tool = make(parameters=create_schema(t=TEXT), places={"t": {"place": "header", "name": "X-T"}})
    with pytest.raises(InvalidArguments, match="must be one line"):
        await tool.run({"t": value}, NO_CONTEXT)
    assert server.seen == []


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"type": "bearer", "token": "env:KEY"}, "authorization", f"Bearer {KEY}"),
        ({"type": "api_key", "token": "env:KEY"}, "x-api-key", KEY),
        ({"type": "api_key", "token": "env:KEY", "name": "X-Other"}, "x-other", KEY),
        (
            {"type": "api_key", "token": "env:KEY", "name": "key", "place": "cookie"},
            "cookie",
            "key=sk-Sesame+%C3%B6ffne/dich=42",
        ),
        (
            {"type": "basic", "username": "env:USER", "password": "env:PASSWORD"},
            "authorization",
            "Basic " + base64.b64encode(b'ann:s3cret, "quoted"').decode(),
        ),
    ],
)
async def test_authentication_is_sent(server, make, auth, header, value):
    await make(auth=auth).run({}, NO_CONTEXT)
    assert server.seen[0].headers[header] == value


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": KEY}])
async def test_optional_authentication_is_sent_where_its_secret_is_set(server, make, environ):
    auth = {"type": "bearer", "token": "env:KEY", "optional": True}
    tool = make(auth=auth, environ=environ, headers={"X-Fixed": "yes", "X-Key": "env:KEY"})
    await tool.run({}, NO_CONTEXT)
    [seen] = server.seen
    key = environ.get("KEY")
    assert (seen.headers.get("authorization"), seen.headers.get("x-key"), seen.headers["x-fixed"]) == (
        (f"Bearer {key}", key, "yes") if key else (None, None, "yes")
    )


async def test_a_key_can_go_into_the_query(server, make):
    await make("/x?a=1", auth={"type": "api_key", "token": "env:KEY", "name": "key", "place": "query"}).run(
        {}, NO_CONTEXT
    )
    assert server.seen[0].path == "/x?a=1&key=sk-Sesame%2B%C3%B6ffne%2Fdich%3D42"


@pytest.mark.parametrize(("kind", "variable"), [("bearer", "WEATHER_TOKEN"), ("api_key", "WEATHER_API_KEY")])
async def test_a_key_can_be_named_by_its_prefix(server, make, kind, variable):
    await make(auth={"type": kind, "token_env": "WEATHER"}, environ={variable: "k1234"}).run({}, NO_CONTEXT)
    assert "k1234" in str(server.seen[0].headers)


@pytest.mark.parametrize(
    ("endpoint", "arguments", "content_type", "body"),
    [
        ({}, {"name": "李", "n": 1, "o": {"a": [None]}}, "application/json", '{"name":"李","n":1,"o":{"a":[null]}}'),
        ({}, {}, None, ""),
        ({"body_required": True}, {}, "application/json", "{}"),
        ({"places": {"n": "query"}}, {"name": "x", "n": 1}, "application/json", '{"name":"x"}'),
        (
            {"places": {"name": {"place": "body", "name": "full name"}}},
            {"name": "x"},
            "application/json",
            '{"full name":"x"}',
        ),
        ({"body_param": "o"}, {"o": [1, 2]}, "application/json", "[1,2]"),
        ({"content_type": "application/merge-patch+json"}, {"n": None}, "application/merge-patch+json", '{"n":null}'),
        (
            {"body_type": "form"},
            {"name": "a b&中", "o": ["x", "y"]},
            "application/x-www-form-urlencoded",
            "name=a+b%26%E4%B8%AD&o=x&o=y",
        ),
        (
            {"body_type": "form", "places": {"n": {"place": "query", "name": "o", "style": "deepObject"}}},
            {"n": {"a": 1}, "o": {"a": 1}},
            "application/x-www-form-urlencoded",
            "o=%7B%22a%22%3A1%7D",
        ),
        (
            {"body_type": "text", "body_param": "o", "places": {"n": "query", "name": "query"}},
            {"o": "hé"},
            "text/plain; charset=utf-8",
            "hé",
        ),
        (
            {"body_type": "binary", "body_param": "o", "places": {"n": "query", "name": "query"}},
            {"o": {"base64": "aGk=", "content_type": "image/png"}},
            "image/png",
            "hi",
        ),
    ],
)
async def test_the_body_is_what_the_endpoint_takes(server, make, endpoint, arguments, content_type, body):
    tool = make(method="POST", parameters=create_schema(name=TEXT, n=ANY, o=ANY), **endpoint)
    await tool.run(arguments, NO_CONTEXT)
    [seen] = server.seen
    assert (seen.headers.get("content-type"), seen.body.decode()) == (content_type, body)


async def test_files_are_sent_as_multipart(server, make):
    got = {}

    async def answer(request):
        return web.json_response({"ok": True})

    server.answer = answer
    tool = make(
        method="POST",
        parameters=create_schema(name=TEXT, meta=ANY, file=ANY, plain=ANY),
        body_type="multipart",
        files=("file", "plain"),
    )
    await tool.run(
        {
            "name": "李",
            "meta": {"a": 1},
            "file": [{"filename": 'a"b\r\nc.png', "base64": "iVBORw==", "content_type": "image/png"}],
            "plain": "text\r\n--x",
        },
        NO_CONTEXT,
    )
    [seen] = server.seen
    import email.message
    import email.parser

    head = f"content-type: {seen.headers['content-type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(email.message.Message).parsebytes(head + seen.body)
    got = {
        part.get_param("name", header="content-disposition"): (part.get_content_type(), part.get_payload(decode=True))
        for part in message.get_payload()
    }
    assert got == {
        "name": ("text/plain", "李".encode()),
        "meta": ("application/json", b'{"a":1}'),
        "file": ("image/png", b"\x89PNG"),
        "plain": ("text/plain", b"text\r\n--x"),
    }
    assert b"\r\nc.png" not in seen.body


@pytest.mark.parametrize(
    ("given", "field", "received"),
    [
        ({"f": {"base64": "***"}}, "f.base64", '"***"'),
        ({"f": {"base64": "é"}}, "f.base64", '"é"'),
        ({"f": {"text": "a", "base64": "YQ=="}}, "f", '{"text":"a","base64":"YQ=="}'),
        ({"f": {}}, "f", "{}"),
        ({"f": 3}, "f", "3"),
        ({"f": {"text": "a", "content_type": "a\r\nb"}}, "f.content_type", r'"a\r\nb"'),
        ({"h": "a\nb"}, "h", r'"a\nb"'),
        ({"q": "a\ud83d"}, "q", '"a?"'),
    ],
)
async def test_a_value_that_cannot_be_sent_is_reported(make, given, field, received):
    places = {"h": "header", "q": "query"}
    schema = create_schema(f=ANY, h=TEXT, q=TEXT)
    tool = make(method="POST", parameters=schema, body_type="multipart", files=("f",), places=places)
    with pytest.raises(InvalidArguments) as caught:
        await tool.run(given, NO_CONTEXT)
    assert [(problem.field, problem.received) for problem in caught.value.problems] == [(field, received)]


async def test_arguments_are_checked_before_anything_is_sent(server, make):
    tool = make(
        "/{id}",
        parameters={
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "unit": {"enum": ["C", "F"]},
                "days": {"type": "integer", "minimum": 1},
                "o": {"type": "object", "properties": {"k": TEXT}, "required": ["k"]},
            },
            "required": ["id", "days"],
        },
    )
    with pytest.raises(InvalidArguments) as caught:
        tool.check({"id": "x", "unit": "K", "o": {}, "wind": 1})
    assert {(p.field, p.problem, p.received) for p in caught.value.problems} == {
        ("id", "must be a valid integer", '"x"'),
        ("unit", 'must be "C" or "F"', '"K"'),
        ("days", "is required", None),
        ("o.k", "is required", None),
        ("wind", "there is no such parameter; the parameters are id, unit, days, o", "1"),
    }
    assert server.seen == []


async def test_a_path_parameter_is_required_whether_the_schema_says_so_or_not(make):
    tool = make("/{a}/{b}", parameters=create_schema(a=TEXT, b={"type": "string", "default": "x"}))
    assert tool.definition.name == "shop_item"
    assert tool.definition.parameters["required"] == ["a"]


# What is no endpoint.


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"url_template": "https://{host}/x"}, "must begin with a fixed"),
        ({"url_template": "{scheme}://a.example/x"}, "must begin with a fixed"),
        ({"url_template": "https://a.{b}.example/x"}, "must begin with a fixed"),
        ({"url_template": "https://a.example:{port}/"}, "must begin with a fixed"),
        ({"url_template": "ftp://a.example/"}, "https:// or http://"),
        ({"url_template": "a.example/x"}, "must begin with a fixed"),
        ({"url_template": "https://u:p@a.example/"}, "user name"),
        ({"url_template": "https://a.example/x#y"}, "after #"),
        ({"url_template": "https://a.example/{+q}"}, "braces must enclose a parameter"),
        ({"url_template": "https://a.example/{q"}, "braces must enclose a parameter"),
        ({"url_template": "https://a.example/../{q}"}, "cannot have . or .."),
        ({"url_template": "https://a.example/{nope}"}, "nope, which its parameters do not describe"),
        ({"places": {"nope": "query"}}, "nope, which its parameters do not describe"),
        ({"places": {"q": "path"}}, "the URL has no {q}"),
        ({"places": {"q": "body"}}, "a GET has no body"),
        ({"places": {"q": {"place": "header", "name": "Host"}}}, "cannot be the header"),
        ({"places": {"q": {"place": "header", "name": "a b"}}}, "cannot be the header"),
        ({"headers": {"X\r\nY": "1"}}, "cannot be set"),
        ({"headers": {"Host": "x"}}, "cannot be set"),
        ({"headers": {"X": "a\r\nb"}}, "line break"),
        ({"headers": {"X": "env:GONE"}}, "environment variable GONE"),
        ({"auth": {"type": "bearer", "token": "env:GONE"}}, "environment variable GONE"),
        ({"auth": {"type": "bearer", "token": "env:EMPTY"}}, "environment variable EMPTY"),
        ({"auth": {"type": "bearer", "token": "env:BROKEN"}}, "line break"),
        ({"url_template": "http://127.0.0.1:1/"}, "loopback"),
        ({"url_template": "http://metadata.google.internal/"}, "internal host name"),
        ({"method": "POST", "body_type": "text"}, "one parameter, named by body_param"),
    ],
)
def test_an_endpoint_that_cannot_work_is_refused_when_registered(spec, said):
    endpoint = {"url_template": "https://a.example/x", **spec}
    whole = HttpToolSpec(tool_id="t", endpoint=endpoint, parameters=create_schema(q=TEXT))
    with pytest.raises(ToolRegistrationError) as caught:
        HttpTool(whole, GuardedClient(), ENVIRON)
    assert said in str(caught.value)
    assert str(caught.value).startswith("t: ")


@pytest.mark.parametrize(
    ("schema", "transform", "said"),
    [
        ({"type": "array"}, {}, "must be a JSON Schema of type object"),
        ({"type": "object", "properties": {"q": {"type": "strin"}}}, {}, "not a valid JSON Schema"),
        ({"type": "object", "properties": {"q": {"$ref": "http://127.0.0.1:1/x"}}}, {}, "not a valid JSON Schema"),
        ({"type": "object", "properties": {}}, {"extract": "a.[b"}, "not a valid JMESPath expression"),
    ],
)
def test_an_invalid_schema_or_extract_is_refused_at_registration(schema, transform, said):
    spec = HttpToolSpec(
        tool_id="t", endpoint={"url_template": "https://a.example/x"}, parameters=schema, response_transform=transform
    )
    with pytest.raises(ToolRegistrationError, match=said):
        HttpTool(spec, GuardedClient(), ENVIRON)


@pytest.mark.parametrize(
    "auth", [{"type": "bearer", "token": KEY}, {"type": "basic", "username": "u", "password": KEY}]
)
def test_a_secret_in_place_of_a_reference_is_refused_and_not_repeated(auth):
    with pytest.raises(ValidationError) as caught:
        HttpToolSpec(tool_id="t", endpoint={"url_template": "https://a.example", "auth": auth})
    assert KEY not in str(caught.value)


async def test_a_missing_environment_variable_is_reported_at_the_call(server, make):
    environ = dict(ENVIRON)
    tool = make(auth={"type": "bearer", "token": "env:KEY"}, environ=environ)
    del environ["KEY"]
    with pytest.raises(ToolUnavailable, match="environment variable KEY, which this tool needs, is not set"):
        await tool.run({}, NO_CONTEXT)
    assert server.seen == []


def test_internal_endpoints_mean_built_in_tools():
    def spec(url):
        return HttpToolSpec(tool_id="t", endpoint={"url_template": url})

    assert get_internal_tool_name(spec("internal://calculator"), ["time", "calculator"]) == "calculator"
    assert get_internal_tool_name(spec("https://a.example/"), ["time"]) is None
    with pytest.raises(ToolRegistrationError, match=r"no built-in tool 'shell'. internal:// knows calculator, time"):
        get_internal_tool_name(spec("internal://shell"), ["time", "calculator"])


# What comes back.


@pytest.mark.parametrize(
    ("body", "content_type", "transform", "expected"),
    [
        ({"a": [1, 2]}, "application/json", {}, {"a": [1, 2]}),
        (b'{"a": 1}', "text/html", {}, {"a": 1}),
        (b"plain", "text/plain", {}, "plain"),
        (b"1.10", "text/plain", {}, "1.10"),
        (b"true", "text/csv", {}, "true"),
        (b'"hello"', "text/plain", {}, '"hello"'),
        (b'"hello"', "text/plain", {"extract": "@"}, "hello"),
        (b'"hello"', "application/octet-stream", {}, "hello"),
        (b"1.10", "application/problem+json", {}, 1.1),
        (str(2**70).encode(), "application/json", {"max_characters": 30}, 2**70),
        (b"", "application/json", {}, {"status": 200}),
        ({"items": [{"n": "x"}, {"n": "y"}]}, "application/json", {"extract": "items[].n"}, ["x", "y"]),
        ({"a": 1}, "application/json", {"extract": "b"}, None),
        ("价格".encode("gb18030"), "text/plain", {}, "价格"),
        ('{"城市":"北京"}'.encode("gbk"), "application/json; charset=gbk", {}, {"城市": "北京"}),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", {}, "é"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png", {}, {"content_type": "image/png", "bytes": 10}),
        (b"%PDF-1.7\n%\xe2\xe3\x01", "application/pdf", {}, {"content_type": "application/pdf", "bytes": 13}),
        ("“q”".encode("cp1252"), "text/plain; charset=iso-8859-1", {}, "“q”"),
        ("a,中".encode("utf-16-le"), "text/csv; charset=utf-16le", {}, "a,中"),
        (b"", "application/x-ndjson", {}, {"status": 200}),
        (b"\xef\xbb\xbfdata: x\n\n", "text/event-stream", {}, "x"),
        (b"x" * 50, "text/plain", {"max_bytes": 10}, "x" * 10 + "\n…"),
        (b"x" * 50, "text/plain", {"max_characters": 5}, "xxxxx…"),
        ({"a": "y" * 50}, "application/json", {"max_characters": 8}, '{"a":"yy…'),
    ],
)
async def test_an_answer_is_converted_to_its_value(server, make, body, content_type, transform, expected):
    set_answer(server, body, content_type=content_type)
    assert await make(transform=transform).run({}, NO_CONTEXT) == expected


async def test_listed_headers_are_shown_where_the_answer_has_them(server, make):
    tool = make(auth={"type": "bearer", "token": "env:KEY"}, transform={"headers": ["link", "x-total"]})
    set_answer(server, [1], Link=f'</x?page=2&key={KEY}>; rel="next"')
    assert await tool.run({}, NO_CONTEXT) == {"headers": {"link": '</x?page=2&key=***>; rel="next"'}, "body": [1]}
    set_answer(server, [1])
    assert await tool.run({}, NO_CONTEXT) == [1]


@pytest.mark.parametrize(
    ("status", "method", "is_unknown"),
    [(502, "POST", True), (504, "POST", True), (503, "POST", False), (429, "POST", False), (504, "GET", False)],
)
async def test_the_outcome_is_unknown_where_a_gateway_lost_the_answer(server, make, status, method, is_unknown):
    set_answer(server, {}, status)
    result = await ToolLibrary([make(method=method)]).call("shop.item", {})
    assert (result.failure, "outcome is unknown" in result.content) == ("unavailable", is_unknown)


async def test_the_outcome_is_unknown_where_the_connection_breaks(server, make):
    async def drop(request):
        request.transport.abort()
        return web.Response()

    server.answer = drop
    result = await ToolLibrary([make(method="POST")]).call("shop.item", {})
    assert (result.failure, len(server.seen)) == ("unavailable", 1)
    assert "outcome is unknown" in result.content


async def test_no_retry_comes_before_the_server_asks_for_it(server, make):
    set_answer(server, {}, 429, **{"retry-after": "60"})
    result = await ToolLibrary([make()]).call("shop.item", {})
    assert (result.failure, len(server.seen)) == ("unavailable", 1)
    assert "try again in 60 s" in result.content


async def test_a_head_request_returns_the_headers(server, make):
    set_answer(server, b"12345", content_type="text/plain", ETag="x1")
    result = await make(method="HEAD").run({}, NO_CONTEXT)
    assert result == {"status": 200, "headers": {"content-type": "text/plain", "content-length": "5", "etag": "x1"}}


@pytest.mark.parametrize(
    ("body", "transform", "said"),
    [
        (b'{"a": "' + b"x" * 500 + b'"}', {"max_bytes": 100}, "larger than 100 bytes"),
        (b"<html>oops", {"extract": "a"}, "where JSON was expected"),
        ({"a": "x"}, {"extract": "sum(a)"}, "does not have the form"),
    ],
)
async def test_an_unusable_answer_is_a_failure(server, make, body, transform, said):
    set_answer(server, body)
    with pytest.raises(ToolFailed, match=said):
        await make(transform=transform).run({}, NO_CONTEXT)


@pytest.mark.parametrize("extract", ["", "data.items"])
async def test_body_is_a_failure_only_by_the_spec(server, make, client, extract):
    set_answer(server, {"ok": False, "data": {"items": [1]}})
    spec = make(transform={"extract": extract}).spec
    library = ToolLibrary([HttpTool(spec, client, ENVIRON)])
    assert (await library.call("shop.item", {})).failure is None
    strict = spec.model_copy(update={"failure_when": {"/ok": False}})
    library = ToolLibrary([HttpTool(strict, client, ENVIRON)])
    result = await library.call("shop.item", {})
    assert (result.failure, result.content) == ("failed", '{"ok":false,"data":{"items":[1]}}')


async def test_reading_stops_at_the_cap(server, make):
    sent = 0

    async def endless(request):
        nonlocal sent
        response = web.StreamResponse(headers={"content-type": "text/plain"})
        await response.prepare(request)
        while True:
            await response.write(b"x" * 100_000)
            sent += 100_000
        return response

    server.answer = endless
    result = await make(transform={"max_bytes": 300_000}).run({}, NO_CONTEXT)
    assert len(result) == 300_002
    assert sent < 50_000_000


async def test_a_small_file_that_unpacks_to_a_large_one_is_capped(server, make):
    import gzip

    set_answer(server, gzip.compress(b"x" * 50_000_000), content_type="text/plain", **{"content-encoding": "gzip"})
    assert len(await make(transform={"max_bytes": 1000}).run({}, NO_CONTEXT)) == 1002


@pytest.mark.parametrize(
    ("status", "body", "headers", "error", "said"),
    [
        (
            400,
            {"error": {"message": "city is unknown"}},
            {},
            ToolFailed,
            "127.0.0.1 answered HTTP 400: city is unknown",
        ),
        (422, {"detail": [{"loc": ["q"], "msg": "too long"}]}, {}, ToolFailed, '"msg":"too long"'),
        (
            422,
            {"message": "Validation Failed", "errors": [{"field": "title"}], "status": 422, "data": {}},
            {},
            ToolFailed,
            '127.0.0.1 answered HTTP 422: {"message":"Validation Failed","errors":[{"field":"title"}],"status":422,"data":{}}',
        ),
        (404, {"message": "no such item"}, {}, ToolFailed, "127.0.0.1 answered HTTP 404: no such item"),
        (409, b"<html><style>p{}</style><h1>Conflict</h1></html>", {}, ToolFailed, "answered HTTP 409: Conflict"),
        (
            401,
            {"error": "bad token"},
            {},
            ToolFailed,
            "did not accept this tool's credentials or rights (HTTP 401): bad token",
        ),
        (403, b"", {}, ToolFailed, "(HTTP 403): (no text)"),
        (500, {"title": "boom"}, {}, ToolFailed, "HTTP 500: boom"),
        (
            429,
            {"detail": "slow down"},
            {"retry-after": "7"},
            ToolUnavailable,
            "(HTTP 429), try again in 7 s: slow down",
        ),
        (503, b"", {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, ToolUnavailable, "(HTTP 503), try again in 0 s"),
        (503, b"", {"retry-after": "soon"}, ToolUnavailable, "(HTTP 503): (no text)"),
        (503, b"", {"retry-after": "-inf"}, ToolUnavailable, "(HTTP 503), try again in 0 s"),
        (302, b"", {"location": "https://elsewhere.example/"}, ToolRefused, "redirects to https://elsewhere.example/"),
        (500, b"x" * 5000, {}, ToolFailed, "x" * 4000 + "…"),
        (422, b"x" * 5000, {}, ToolFailed, "x" * 5000),
        (404, b"<p>" + b"x" * 5000, {}, ToolFailed, "x" * 4000 + "…"),
        (500, b"<html><style>" + b"p{}" * 5000 + b"</style><h1>Boom</h1>", {}, ToolFailed, "HTTP 500: Boom"),
        (500, b"<html><h1>Boom</h1><script>" + b"x" * 90_000, {}, ToolFailed, "HTTP 500: Boom"),
    ],
)
async def test_a_status_becomes_the_failure_it_means(server, make, status, body, headers, error, said):
    set_answer(server, body, status, **headers)
    with pytest.raises(error) as caught:
        await make().run({}, NO_CONTEXT)
    assert said in str(caught.value)


async def test_an_order_whose_result_is_not_there_yet_has_an_unknown_outcome(server, make):
    async def answer(request):
        if request.method == "POST":
            raise web.HTTPSeeOther("/result")
        return web.Response(status=503)

    server.answer = answer
    with pytest.raises(ToolUnavailable) as caught:
        await make("/orders", "POST", redirects=2).run({}, NO_CONTEXT)
    assert caught.value.outcome_unknown
    with pytest.raises(ToolUnavailable) as caught:
        await make("/result").run({}, NO_CONTEXT)
    assert not caught.value.outcome_unknown


def get_echoed_secrets():
    """Ways in which an upstream gives a key away."""
    quoted = json.dumps({"message": f"key {KEY} is wrong", KEY: [KEY, {"deep": f"x{KEY}y"}]})
    return [
        LOWER_CASE_KEY.encode(),
        f"log: {KEY}".replace("/", "\\/").encode(),
        quoted.encode(),
        f"Bearer {KEY}".encode(),
        base64.b64encode(f"ann:{ENVIRON['PASSWORD']}".encode()),
        ENVIRON["PASSWORD"].encode(),
    ]


@pytest.mark.parametrize("body", get_echoed_secrets())
@pytest.mark.parametrize("status", [200, 301, 400, 403, 500, 503])
@pytest.mark.parametrize(
    "auth",
    [
        {"type": "bearer", "token": "env:KEY"},
        {"type": "api_key", "token": "env:KEY", "name": "key", "place": "query"},
        {"type": "basic", "username": "ann", "password": "env:PASSWORD"},
    ],
)
async def test_no_secret_comes_back(server, make, body, status, auth):
    set_answer(server, body, status, location=f"https://a.example/?key={KEY}", **{"x-echo": "1"})
    tool = make(auth=auth, headers={"X-Second": "env:KEY"}, method="GET")
    library = ToolLibrary([tool])
    result = await library.call("shop.item", {})
    text = repr(result)
    secrets = [KEY, ENVIRON["PASSWORD"]] if auth["type"] == "basic" else [KEY]
    assert LOWER_CASE_KEY not in text
    assert KEY.replace("/", "\\\\/") not in text
    for secret in secrets:
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text
        assert base64.b64encode(secret.encode()).decode() not in text
    assert base64.b64encode(f"ann:{ENVIRON['PASSWORD']}".encode()).decode() not in text or auth["type"] != "basic"
    assert KEY in str(server.seen)


async def test_a_reference_after_another_word_is_redacted_and_required(server, make):
    set_answer(server, {"echo": f"Token {KEY}", "key": KEY})
    tool = make(headers={"Authorization": "Token env:KEY"})
    assert await tool.run({}, NO_CONTEXT) == {"echo": "Token ***", "key": "***"}
    with pytest.raises(ToolRegistrationError, match="environment variable KEY, which this tool needs, is not set"):
        make(headers={"Authorization": "Token env:KEY"}, environ={})


async def test_user_names_and_settings_are_not_redacted(server, make):
    answer = {"role": "admin", "region": "northeast", "latest": "s3cret", "echo": "an unnamed secret"}
    set_answer(server, answer)
    tool = make(
        auth={"type": "basic", "username": "env:USER", "password": "env:PASSWORD"},
        headers={"X-Region": "env:REGION", "X-Acme": "env:ACME"},
        environ={"USER": "admin", "PASSWORD": "s3cret", "REGION": "east", "ACME": "an unnamed secret"},
    )
    assert await tool.run({}, NO_CONTEXT) == answer | {"latest": "***", "echo": "***"}


async def test_a_server_that_is_not_there_is_unavailable(make, server):
    spec = HttpToolSpec(tool_id="t", endpoint={"url_template": "http://127.0.0.1:9999/"})
    client = GuardedClient(["127.0.0.1"])
    with pytest.raises(ToolUnavailable, match=r"127.0.0.1 cannot be reached"):
        await HttpTool(spec, client).run({}, NO_CONTEXT)
    await client.aclose()


@pytest.mark.parametrize(("method", "count"), [("PUT", 1), ("DELETE", 1), ("POST", 1), ("GET", 2)])
async def test_only_a_request_that_reads_is_sent_again_on_a_new_connection(method, count):
    client = GuardedClient(["127.0.0.1"])
    received: list[bytes] = []

    async def answer_once(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError):
            for _ in range(2):
                received.append((await reader.readuntil(b"\r\n\r\n")).split()[0])
                if received[-1] == b"OPTIONS":  # the connection is closed at the next request
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                else:
                    break
        writer.close()

    async with await asyncio.start_server(answer_once, "127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
        async with client.send(HttpRequest("OPTIONS", url)) as response:
            await response.read()
        with pytest.raises(ToolUnavailable):
            async with client.send(HttpRequest(method, url)):
                pass
    await client.aclose()
    assert received.count(method.encode()) == count


ONE_OF = {
    "type": "object",
    "properties": {"kind": TEXT},
    "oneOf": [
        {"properties": {"kind": {"const": "email"}, "address": TEXT}, "required": ["address"]},
        {"properties": {"kind": {"const": "sms"}, "phone": TEXT}, "required": ["phone"]},
    ],
}


@pytest.mark.parametrize("schema", [ONE_OF, {"type": "object", "allOf": [ONE_OF]}])
async def test_arguments_that_a_part_of_the_schema_describes_are_known(server, make, schema):
    tool = make("/x", "POST", schema)
    assert tool.check({"kind": "sms", "phone": "1"}) == {"kind": "sms", "phone": "1"}
    with pytest.raises(InvalidArguments):
        tool.check({"kind": "sms"})


async def test_a_connection_that_breaks_is_unavailable(server, make):
    async def broken(request):
        response = web.StreamResponse(headers={"content-length": "100"})
        await response.prepare(request)
        await response.write(b"x")
        request.transport.abort()
        return response

    server.answer = broken
    with pytest.raises(ToolUnavailable, match=r"The connection to 127.0.0.1 broke"):
        await make().run({}, NO_CONTEXT)


@pytest.fixture
def slow(server):
    """A server that says one line and then nothing; `left` is set when its client goes."""
    left = asyncio.Event()

    async def answer(request):
        response = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await response.prepare(request)
        await response.write(b'{"n": 1}\n')
        try:
            await asyncio.sleep(60)
        finally:
            left.set()
        return response

    server.answer = answer
    return left


async def test_a_slow_answer_ends_with_the_endpoints_own_time_out(slow, make):
    result = await ToolLibrary([make(timeout=0.2)]).call("shop.item", {})
    assert result.failure == "timeout"
    assert result.content == "There was no answer from 127.0.0.1 within 0.2 seconds."


async def test_cancelling_closes_the_connection(server, slow, make):
    reported = asyncio.Event()
    running = asyncio.create_task(make().run({}, CallContext(report=lambda _: reported.set())))
    await reported.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.wait_for(slow.wait(), 10)


SSE = (
    b': hello\nevent: x\ndata: {"delta": {"text": "Hel"}}\n\ndata: {"delta": {"text": "lo"}}\r\n\r\n'
    b'data: {"usage": 3}\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize(
    ("body", "content_type", "mode", "extract", "reported", "value"),
    [
        (SSE, "text/event-stream", "invokable", "delta.text", ["Hel", "lo"], "Hello"),
        (
            SSE,
            "text/event-stream",
            "streamable",
            "",
            ['{"delta":{"text":"Hel"}}\n', '{"delta":{"text":"lo"}}\n', '{"usage":3}\n'],
            [{"delta": {"text": "Hel"}}, {"delta": {"text": "lo"}}, {"usage": 3}],
        ),
        (
            "data: 一\ndata: 二\n\ndata: 三".encode(),
            "text/event-stream",
            "streamable",
            "",
            ["一\n二\n", "三\n"],
            "一\n二\n三",
        ),
        (
            b'{"n":1}\n\n{"n":2}',
            "application/x-ndjson",
            "invokable",
            "",
            ['{"n":1}\n', '{"n":2}\n'],
            [{"n": 1}, {"n": 2}],
        ),
        (b'{"n":1}\n{"n":2}\n', "application/jsonl", "streamable", "n", ["1\n", "2\n"], [1, 2]),
        (
            "行一\n行二\n".encode("gb18030"),
            "text/plain; charset=gb18030",
            "streamable",
            "",
            ["行一\n", "行二\n"],
            "行一\n行二\n",
        ),
        (
            b'data: "Hel"\n\ndata: "lo"\n\n',
            "text/event-stream",
            "invokable",
            "@",
            ["Hel", "lo"],
            "Hello",
        ),
        (b'data: "Hel"\n\n', "text/event-stream", "streamable", "", ["Hel\n"], "Hel"),
        (b'"a"\nb\n', "text/plain", "streamable", "", ['"a"\n', "b\n"], '"a"\nb\n'),
        (b"one\ntwo\n", "text/plain", "invokable", "", [], "one\ntwo\n"),
        (b"a\n2024\n", "text/plain", "streamable", "", ["a\n", "2024\n"], "a\n2024\n"),
        (
            b"# A\n\r\n  [1]\n\nb",
            "text/plain",
            "streamable",
            "",
            ["# A\n", "\r\n", "  [1]\n", "\n", "b"],
            "# A\n\r\n  [1]\n\nb",
        ),
        (b'{"a":\n1}\n', "text/plain", "streamable", "", ['{"a":\n', "1}\n"], {"a": 1}),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_streaming_answer_is_reported_as_it_comes(
    server, make, body, content_type, mode, extract, reported, value, size
):
    async def answer(request):
        response = web.StreamResponse(headers={"content-type": content_type})
        await response.prepare(request)
        for at in range(0, len(body), size):
            await response.write(body[at : at + size])
            await asyncio.sleep(0)
        return response

    server.answer = answer
    deltas: list[str] = []
    tool = make(mode=mode, transform={"extract": extract})
    assert await tool.run({}, CallContext(report=deltas.append)) == value
    assert deltas == reported


async def test_deltas_are_reported_before_the_answer_ends(server, make):
    first = asyncio.Event()

    async def answer(request):
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: one\n\n")
        await first.wait()  # the answer goes on only when the first piece has arrived
        await response.write(b"data: " + KEY.encode() + b"\n\n")
        return response

    server.answer = answer
    deltas: list[str] = []

    def report(text: str) -> None:
        deltas.append(text)
        first.set()

    tool = make(auth={"type": "bearer", "token": "env:KEY"})
    assert await tool.run({}, CallContext(report=report)) == "one\n***"
    assert deltas == ["one\n", "***\n"]


async def test_a_stream_that_max_bytes_ends_is_marked(server, make):
    async def endless(request):
        response = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await response.prepare(request)
        while True:
            await response.write(b'{"n": 1}\n')
        return response

    server.answer = endless
    result = await make(transform={"max_bytes": 1000}).run({}, NO_CONTEXT)
    assert (result[0], result[-1]) == ({"n": 1}, "…")


async def test_a_secret_split_between_two_deltas_is_redacted(server, make):
    events = "".join(f"data: {json.dumps({'t': part})}\n\n" for part in (KEY[:7], KEY[7:]))
    set_answer(server, events.encode(), content_type="text/event-stream")
    tool = make(auth={"type": "bearer", "token": "env:KEY"}, transform={"extract": "t"})
    assert await tool.run({}, NO_CONTEXT) == "***"


async def test_an_answer_nested_too_deeply_is_a_failure_or_text(server, make):
    set_answer(server, b"[" * 1000 + b"]" * 1000)
    tool = make(auth={"type": "bearer", "token": "env:KEY"})
    with pytest.raises(ToolFailed, match="nested too deeply"):
        await tool.run({}, NO_CONTEXT)


@pytest.mark.parametrize(
    "charset", ["idna", "punycode", "unicode_escape", "undefined", "hex", "nonsense", "\x00", "utf-7"]
)
async def test_an_unknown_charset_is_ignored(server, make, charset):
    set_answer(server, "价格".encode("gbk"), content_type=f'text/plain; charset="{charset}"'.replace("\x00", "-"))
    assert await make().run({}, NO_CONTEXT) == "价格"


async def test_one_session_serves_all_calls(server, make, client):
    ports = set()

    async def answer(request):
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.json_response({})

    server.answer = answer
    tool = make()
    for _ in range(5):
        await tool.run({}, NO_CONTEXT)
    assert len(ports) == 1
    await client.aclose()
    await tool.run({}, NO_CONTEXT)
    assert len(ports) == 2
