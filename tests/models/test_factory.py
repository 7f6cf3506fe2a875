"""Names become models, or a sentence that says what would be right."""

from pathlib import Path
from typing import Any, get_args

import pytest
from openai.types import ChatModel, ResponsesModel
from tests.models.chat_server import build_completion, chat_server

from opposable.domain.errors import BadInput
from opposable.models.anthropic import AnthropicModel
from opposable.models.embedded.llama_cpp import LocalModel
from opposable.models.embedded.weights import QWEN_CODER
from opposable.models.factory import (
    API_KEY_VARIABLES,
    MODEL_NAME_FORMS,
    PROVIDERS,
    REASONING_FAMILIES,
    create_model,
    normalize_model_name,
)
from opposable.models.marker_calls import MarkerCallsModel
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.models.profile import get_profile
from opposable.models.text_protocol import TextProtocolModel
from opposable.models.upstream import find_upstream

VARIABLES = (
    *API_KEY_VARIABLES.values(),
    *(p.base_url_variable for p in PROVIDERS.values()),
    "ANTHROPIC_BASE_URL",
    "OPPOSABLE_API_KEY",
)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("name", "variable", "kind", "model_name"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY", OpenAIResponsesModel, "gpt-5"),
        ("openai:gpt-4.1", "OPENAI_API_KEY", OpenAICompatibleModel, "gpt-4.1"),
        ("qwen:qwen3-max", "DASHSCOPE_API_KEY", OpenAICompatibleModel, "qwen3-max"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY", OpenAICompatibleModel, "deepseek-chat"),
        ("anthropic:claude-opus", "ANTHROPIC_API_KEY", AnthropicModel, "claude-opus"),
        ("openai:ft:gpt-4o:me::1", "OPENAI_API_KEY", OpenAICompatibleModel, "ft:gpt-4o:me::1"),
    ],
)
def test_a_hosted_model_is_native_with_nothing_around_it(
    monkeypatch: pytest.MonkeyPatch, name: str, variable: str, kind: type, model_name: str
) -> None:
    monkeypatch.setenv(variable, " sk-1 ")
    model = create_model(name)
    assert (type(model), model.name) == (kind, model_name)
    assert (get_profile(model).calling, get_profile(model).assisted) == ("native", False)


def list_openai_models() -> tuple[set[str], set[str]]:
    """The models that the installed SDK knows for chat completions, and those that only have responses."""
    chat = set(get_args(ChatModel))
    return chat, {name for part in get_args(ResponsesModel) for name in get_args(part)} - chat


def test_reasoning_models_of_openai_use_the_responses_api() -> None:
    chat, responses_only = list_openai_models()
    reasoning = {name for name in chat | responses_only if REASONING_FAMILIES.match(name)}
    assert {"o3", "o4-mini", "gpt-5", "gpt-5.4-mini", "gpt-6-sol", "codex-mini-latest"} <= reasoning
    assert not {name for name in reasoning if name.startswith(("gpt-3", "gpt-4", "gpt-audio", "chatgpt-"))}
    assert not {name for name in reasoning if name.endswith("-chat-latest")}
    assert {name for name in responses_only - reasoning if name.startswith(("o", "gpt-5", "gpt-6"))} == set()


@pytest.mark.parametrize(
    ("name", "url", "api", "kind"),
    [
        ("openai:gpt-5", "", "chat", OpenAICompatibleModel),
        ("openai:gpt-5", "http://127.0.0.1:4000/v1", None, OpenAICompatibleModel),
        ("openai:gpt-5", "https://eu.api.openai.com/v1", None, OpenAIResponsesModel),
        ("openai:mine", "http://127.0.0.1:4000/v1", "responses", OpenAIResponsesModel),
        ("qwen:qwen3-max", "", "responses", OpenAIResponsesModel),
    ],
)
def test_the_api_can_be_set(monkeypatch: pytest.MonkeyPatch, name: str, url: str, api: Any, kind: type) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-1")
    if url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    assert type(create_model(name, api=api)) is kind


def test_a_server_of_responses_alone_gets_no_chat_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    by_name, by_url = create_model("openai:gpt-5"), create_model("http://h/v1#m", api="responses")
    assert find_upstream(by_name, "chat/completions") is not None
    assert find_upstream(by_url, "chat/completions") is None
    assert find_upstream(by_url, "responses") is not None


FULL_NAMES = [
    ("gpt-5-mini", "openai:gpt-5-mini"),
    ("o3", "openai:o3"),
    ("claude-opus-4", "anthropic:claude-opus-4"),
    ("qwen-plus", "qwen:qwen-plus"),
    ("qwen3-max", "qwen:qwen3-max"),
    ("deepseek-chat", "deepseek:deepseek-chat"),
    ("ollama:qwen3:8b", "http://127.0.0.1:11434/v1#qwen3:8b"),
    ("local", "local"),
    ("local:gpt-2.gguf", "local:gpt-2.gguf"),
    ("openai:ft:gpt-4o:me::1", "openai:ft:gpt-4o:me::1"),
    ("https://host/v1#gpt-5", "https://host/v1#gpt-5"),
    ("nonsense", "nonsense"),
    ("ollama:", "ollama:"),
]


@pytest.mark.parametrize(("name", "full_name"), FULL_NAMES)
def test_a_name_without_a_provider_gets_one(name: str, full_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    assert normalize_model_name(name) == full_name
    assert normalize_model_name(full_name) == full_name


OLLAMA_URLS = [
    ("10.0.0.2:1234", "http://10.0.0.2:1234"),
    ("http://10.0.0.2:1234/", "http://10.0.0.2:1234"),
    ("https://ollama.test", "https://ollama.test"),
    ("0.0.0.0", "http://0.0.0.0:11434"),
    ("[::1]", "http://[::1]:11434"),
    (":1234", "http://127.0.0.1:1234"),
    ("", "http://127.0.0.1:11434"),
]


@pytest.mark.parametrize(("host", "url"), OLLAMA_URLS)
def test_the_server_of_ollama_is_taken_from_its_variable(host: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    model = create_model("ollama:qwen3")
    assert (type(model), model.name) == (MarkerCallsModel, "qwen3")
    assert normalize_model_name("ollama:qwen3") == f"{url}/v1#qwen3"


@pytest.mark.parametrize(
    ("name", "model_name"), [("http://127.0.0.1:1/v1#org/model:7b", "org/model:7b"), ("https://host/v1#m#1", "m#1")]
)
def test_a_server_by_url_is_searched_for_marked_calls_only(name: str, model_name: str) -> None:
    model = create_model(name)
    assert isinstance(model, MarkerCallsModel)
    assert (type(model.inner), model.name) == (OpenAICompatibleModel, model_name)
    assert (model.profile.calling, model.profile.assisted) == ("auto", False)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("[::1]:8000", True),
        ("localhost:11434", True),
        ("10.1.2.3", True),
        ("192.168.0.7:1", True),
        ("vllm:8000", True),
        ("host.docker.internal:1", True),
        ("openrouter.ai/api", False),
        ("8.8.8.8", False),
    ],
)
def test_a_server_is_local_by_its_address(host: str, local: bool) -> None:
    assert get_profile(create_model(f"http://{host}/v1#m")).local is local


@pytest.mark.parametrize("name", ["openai:o", "qwen:q", "deepseek:d", "anthropic:a"])
@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key_is_reported_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, key: str | None
) -> None:
    variable = API_KEY_VARIABLES[name.partition(":")[0]]
    if key is not None:
        monkeypatch.setenv(variable, key)
    with pytest.raises(BadInput) as caught:
        create_model(name)
    assert str(caught.value) == f"{name} needs an API key. Set the environment variable {variable}."


@pytest.mark.parametrize(
    "name", ["", "gtp-5", "openai", "openai:", "anthropic:", "qwn:max", "OpenAI:gpt", "ftp://h/v1#m"]
)
def test_an_unknown_name_is_reported_with_the_valid_forms(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        create_model(name)
    assert str(caught.value) == f"There is no model named {name!r}. Use one of these forms: {MODEL_NAME_FORMS}."


@pytest.mark.parametrize("name", ["http://127.0.0.1/v1", "http://127.0.0.1/v1#", "http://#m", "https:///#m", "http:#m"])
def test_a_url_without_host_or_model_is_reported(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        create_model(name)
    assert str(caught.value).startswith(
        f"{name!r} is not the name of a model. Write the base URL of the server, then # and "
    )


def test_every_form_of_the_help_is_a_form_that_is_built() -> None:
    for kind in (*PROVIDERS, "anthropic"):
        assert f"{kind}:NAME" in MODEL_NAME_FORMS
    assert "http://HOST:PORT/v1#NAME" in MODEL_NAME_FORMS


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["openai", "qwen", "deepseek"])
async def test_a_provider_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    async with chat_server(build_completion("Hi.")) as server:
        monkeypatch.setenv(PROVIDERS[kind].base_url_variable, server.url)
        monkeypatch.setenv(PROVIDERS[kind].api_key_variable, "sk-elsewhere")
        model = create_model(f"{kind}:m")
        parts = [part async for part in model.stream([])]
        await model.aclose()
    assert parts[-1].message.content == "Hi."
    assert server.headers[0]["Authorization"] == "Bearer sk-elsewhere"
    assert server.bodies[0]["model"] == "m"


@pytest.mark.anyio
async def test_a_server_by_url_gets_the_key_only_where_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    async with chat_server(build_completion("Hi.")) as server:
        for key in ("", "sk-own"):
            monkeypatch.setenv("OPPOSABLE_API_KEY", key)
            model = create_model(f"{server.url}#m")
            assert [part async for part in model.stream([])]
            await model.aclose()
    assert [headers.get("Authorization") for headers in server.headers] == [None, "Bearer sk-own"]


def test_the_missing_embedded_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        create_model("local", models_directory=tmp_path)
    assert str(caught.value) == (
        "The embedded model is not on this machine yet. Download it once with: opposable models pull"
    )


def test_a_file_that_was_never_verified_is_not_taken_for_the_embedded_model(tmp_path: Path) -> None:
    (tmp_path / QWEN_CODER.filename).write_bytes(b"GGUF")
    with pytest.raises(BadInput, match="not on this machine yet"):
        create_model("local", models_directory=tmp_path)


def test_other_gguf_files_get_their_tools_as_text(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"GGUF\x03\0\0\0")
    model = create_model(f"local:{tmp_path / 'mine.gguf'}")
    assert isinstance(model, TextProtocolModel)
    assert (type(model.inner), model.tool_rendering, model.name) == (LocalModel, "protocol", "mine")


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("openai:gpt-5", "openai"),
        ("gpt-4.1", "openai"),
        ("anthropic:claude-sonnet-5", "anthropic"),
        ("http://127.0.0.1:1/v1#qwen3", "openai_compatible"),
    ],
)
def test_the_profile_names_the_provider(monkeypatch, tmp_path, name, provider):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert get_profile(create_model(name, models_directory=tmp_path)).provider == provider


def test_an_unknown_calling_mode_is_reported() -> None:
    with pytest.raises(BadInput, match=r"no calling mode 'promted'.*prompted, constrained"):
        create_model("http://127.0.0.1:1/v1#m", calling_mode="promted")  # type: ignore[arg-type]
