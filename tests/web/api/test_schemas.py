"""Unknown fields in request bodies are reported, not ignored."""

import pytest
from tests.web.api.asking import open_service_client

pytestmark = pytest.mark.anyio

BODIES = {
    ("POST", "/agent/chat"): {"message": "hello"},
    ("POST", "/api/agent"): {"message": "hello"},
    ("POST", "/api/ask"): {"question": "How many?"},
    ("POST", "/api/agents"): {"agent_id": "a"},
    ("POST", "/api/tools"): {"tool_id": "a", "command": "serve"},
    ("POST", "/api/tools/import/mcp"): {"config": {}},
    ("POST", "/api/tools/import/openapi"): {"url": "https://a.example"},
    ("POST", "/api/keys"): {"name": "front end"},
    ("POST", "/api/tools/calculator/call"): {"arguments": {}},
    ("POST", "/skills/calculator/run"): {"arguments": {}},
    ("POST", "/api/approvals/a"): {"decision": "approve"},
    ("POST", "/api/databases/query"): {"sql": "SELECT 1"},
    ("PUT", "/agent/conversations/a"): {"title": "Stock"},
    ("POST", "/api/batches"): {"tasks": [{"id": "1", "task": "Greet."}]},
}

RAW_WORDS = ("Input should", "Field required", "Extra inputs", "Value error", "pydantic", "input_value", "type=")


async def test_an_unknown_field_is_named(tmp_path):
    async with open_service_client(tmp_path) as ask:
        for (method, path), body in BODIES.items():
            error = (await ask.request_json(method, path, body | {"nonsense": 1}, 422))["error"]
            assert (path, "nonsense: is not a known field" in error["message"]) == (path, True)


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        (
            "/api/agent",
            {"message": "hi", "max_token": 5},
            "body.max_token: is not a known field (did you mean max_tokens?)",
        ),
        ("/api/ask", {"question": "?", "databse": "a"}, "body.databse: is not a known field (did you mean database?)"),
        (
            "/api/agents",
            {"agent_id": "a", "limits": {"turn": 3}},
            "body.limits.turn: is not a known field (did you mean turns?)",
        ),
        (
            "/api/tools",
            {"tool_id": "a", "endpoint": {"url_template": "https://a.example", "metod": "GET"}},
            "body.endpoint.metod: is not a known field (did you mean method?)",
        ),
        (
            "/api/tools/try",
            {"tool": {"endpoint": {"url_template": "https://a.example"}}},
            "body.tool.tool_id: is required",
        ),
        (
            "/api/tools/calculator/call",
            {"argument": {}},
            "body.argument: is not a known field (did you mean arguments?)",
        ),
    ],
)
async def test_the_nearest_field_is_named(tmp_path, path, body, problem):
    async with open_service_client(tmp_path) as ask:
        error = (await ask.request_json("POST", path, body, 422))["error"]
        assert error["message"] == f"The request is not valid: {problem}."


async def test_no_body_gets_the_words_of_the_validator(tmp_path):
    wrong_bodies = ([], {"message": [], "stream": "perhaps", "max_tokens": "many"}, {"tool_id": 5, "endpoint": 7})
    async with open_service_client(tmp_path) as ask:
        for _, path in BODIES:
            for body in wrong_bodies:
                text = (await ask("POST", path, body)).text
                assert not [word for word in RAW_WORDS if word in text], (path, text)


@pytest.mark.parametrize(
    ("body", "content_type", "problem"),
    [
        (b'{"message": "hi"}', "text/plain", "body: must be JSON with the header Content-Type: application/json."),
        (b"message=hi", "application/x-www-form-urlencoded", "body: must be JSON with the header Content-Type"),
        (b'{"message": "caf\xe9"}', "application/json", "body: is not UTF-8 text, or is nested too deep."),
        (b"[" * 100_000, "application/json", "body: is not UTF-8 text, or is nested too deep."),
        (b'{"message": "\\ud800"}', "application/json", "body.message: must be valid Unicode text."),
    ],
    ids=["text", "a form", "not UTF-8", "deep", "half a character"],
)
async def test_a_body_that_is_not_json_is_explained(tmp_path, body, content_type, problem):
    async with open_service_client(tmp_path) as ask:
        response = await ask("POST", "/agent/chat", content=body, headers={"content-type": content_type})
    error = response.json()["error"]
    assert (response.status_code, error["kind"], problem in error["message"]) == (422, "invalid_request", True)
