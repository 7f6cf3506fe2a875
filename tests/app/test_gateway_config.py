"""The configuration of a gateway: names, fallbacks and keys, with errors that name the field."""

from pathlib import Path

import pytest
from tests.app.settings import create_settings
from tests.models.chat_server import build_completion, chat_server, respond_json

from opposable.app.gateway_config import load_gateway_config, open_configured_models
from opposable.domain.errors import BadInput
from opposable.domain.messages import user_message
from opposable.models.base import ModelOptions
from opposable.models.fallback import FallbackModel
from opposable.models.profile import get_profile

pytestmark = pytest.mark.anyio


def write(folder: Path, text: str) -> Path:
    path = folder / "gateway.yaml"
    path.write_text(text)
    return path


async def test_models_are_opened_under_their_names_and_aliases(tmp_path):
    async with chat_server(respond_json({"error": {"message": "away"}}, 503), build_completion("hi")) as server:
        path = write(
            tmp_path,
            f"""
models:
  - name: fast
    model: {server.url}#a
    aliases: [gpt-4o]
    fallbacks: [slow, "{server.url}#c"]
    retries: 0
  - name: slow
    model: {server.url}#b
    calling: text
    images: placeholder
keys:
  front-end: [fast]
""",
        )
        config = load_gateway_config(path)
        assert config.keys == {"front-end": ["fast"]}
        async with open_configured_models(create_settings(tmp_path), config) as models:
            assert list(models) == ["fast", "gpt-4o", "slow"]
            fast = models["fast"]
            assert fast is models["gpt-4o"]
            assert isinstance(fast, FallbackModel)
            assert [candidate.name for candidate in fast.candidates] == ["a", "b", "c"]
            assert fast.candidates[1] is models["slow"]
            assert get_profile(models["slow"]).calling == "text"
            assert [get_profile(m).image_placeholders for m in fast.candidates] == [False, True, False]
            reply = [event async for event in fast.stream([user_message("hi")], (), ModelOptions(stream=False))][-1]
            assert reply.message.content == "hi"
    assert [body["model"] for body in server.bodies] == ["a", "b"]


WRONG = {
    "models: [{name: a}]\nkeys: {}\nkeys: {}": "is not valid YAML: line 3: keys is defined twice",
    "models: []": "models",
    "models: [{name: a, made_up: 1}]": r"models\.0\.made_up",
    "models: [{name: a}, {name: b, aliases: [a]}]": r"configuration\. names and aliases must be unique; these are repeated: a\.",
    "models: [{name: a, aliases: [b], fallbacks: [b]}]": "a model cannot be its own fallback: a",
    "": "It must have the list `models`",
    "models: [a: b: c": r"not valid YAML: line 1: expected ',' or '\]', but got ':'\.",
    "models: [{name: a, retries: 99}]": r"models\.0\.retries",
    "models: [{name: a, fallback_on: [answer]}]": r"models\.0\.fallback_on\.0",
    "{models: [{name: a}], keys: {k: [b]}}": r"keys lists b, but the models of this file are a \(and agent/NAME\)\.",
    "[1": "not valid YAML",
    "3": "It must have the list `models`",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_a_wrong_configuration_is_reported_with_its_field(tmp_path, text, message):
    with pytest.raises(BadInput, match=message):
        load_gateway_config(write(tmp_path, text))


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        load_gateway_config(tmp_path / "none.yaml")
