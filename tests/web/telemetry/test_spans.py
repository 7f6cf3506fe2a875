"""OpenTelemetry spans of runs, tool calls and model calls."""

import httpx2
import pytest
from fastapi import FastAPI
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from opposable.domain.errors import ModelUnavailable
from opposable.models.profile import ModelProfile
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service.service import open_service
from opposable.settings import Settings
from opposable.web.api.routes import add_routes
from opposable.web.application import install_admin
from opposable.web.gateway.routes import create_gateway_routes

pytestmark = pytest.mark.anyio

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


async def collect_spans(tmp_path, *requests, content=False, model=None, is_success=True, headers=PARENT):
    exporter = InMemorySpanExporter()
    given = Settings(_env_file=None, home=tmp_path, roots=(tmp_path,), traces=True, traces_content=content)
    model = model or ScriptedModel(
        reply_with_calls(tool_call("calculator", '{"expression": "6*7", "password": "hunter22"}', "c1")), "42", "42"
    )
    async with open_service(given, {"m": model}) as service:
        app = FastAPI()
        app.state.service = service
        install_admin(app, service, api_key="", max_body_bytes=10_000, exporter=exporter)
        add_routes(app)
        app.router.routes[:0] = create_gateway_routes(service.models, 10_000)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            for path, body in requests:
                assert (await client.post(path, json=body, headers=headers)).is_success == is_success
    return exporter.get_finished_spans()


async def test_a_run_is_a_tree_of_spans_below_the_clients_span(tmp_path):
    spans = await collect_spans(tmp_path, ("/agent/chat", {"message": "6*7?"}))
    by_name = {span.name: span for span in spans}
    run, tool = by_name["invoke_agent default"], by_name["execute_tool calculator"]
    assert sorted(span.name for span in spans) == [
        *["chat scripted"] * 2,
        "execute_tool calculator",
        "invoke_agent default",
    ]
    assert {f"{span.context.trace_id:032x}" for span in spans} == {TRACE}
    assert f"{run.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert {span.parent.span_id for span in spans if span is not run} == {run.context.span_id}
    assert run.start_time <= tool.start_time <= tool.end_time <= run.end_time
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert run.attributes["gen_ai.usage.input_tokens"] == 20
    assert not any("messages" in name or "arguments" in name for span in spans for name in span.attributes)


async def test_spans_have_content_only_if_enabled_and_without_secrets(tmp_path):
    spans = await collect_spans(tmp_path, ("/agent/chat", {"message": "6*7?"}), content=True)
    attributes = {name: value for span in spans for name, value in span.attributes.items()}
    assert "6*7?" in attributes["gen_ai.input.messages"]
    assert "6*7" in attributes["gen_ai.tool.call.arguments"]
    assert "hunter22" not in attributes["gen_ai.tool.call.arguments"]


async def test_calls_without_a_run_are_separate_spans(tmp_path):
    chat = ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    tool = ("/api/tools/echo/call", {"arguments": {"words": 1}})
    spans = await collect_spans(tmp_path, chat, tool)
    assert [(span.name, span.attributes.get("error.type")) for span in spans] == [
        ("chat scripted", None),
        ("execute_tool echo", "invalid_arguments"),
    ]
    assert {f"{span.parent.span_id:016x}" for span in spans} == {"00f067aa0ba902b7"}


class UnavailableModel(ScriptedModel):
    profile = ModelProfile(provider="openai")

    async def stream(self, messages, tools=(), options=None):
        raise ModelUnavailable("gone")
        yield


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/agent/chat", {"message": "hi"}),
        ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
    ],
)
async def test_a_failed_model_request_has_a_span_with_its_provider(tmp_path, path, body):
    spans = await collect_spans(tmp_path, (path, body), model=UnavailableModel(""), is_success=False)
    [chat] = [span for span in spans if span.name == "chat scripted"]
    assert (chat.attributes["gen_ai.provider.name"], chat.attributes["error.type"], chat.status.is_ok) == (
        "openai",
        "model_unavailable",
        False,
    )


@pytest.mark.parametrize("trace_id", [f"-{'1' * 31}", "1_" * 16, f"0x{'1' * 30}"])
async def test_a_trace_id_of_the_client_that_is_no_number_of_128_bits_is_not_that_of_the_spans(tmp_path, trace_id):
    spans = await collect_spans(tmp_path, ("/agent/chat", {"message": "6*7?"}), headers={"x-trace-id": trace_id})
    assert len(encode_spans(spans).resource_spans[0].scope_spans[0].spans) == 4  # the exporter drops whole batches
    assert {span.context.trace_id for span in spans if span.parent} == {spans[-1].context.trace_id}
