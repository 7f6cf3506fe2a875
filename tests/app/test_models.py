"""Models are opened by name, and their kinds are listed."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.app.settings import create_settings

from opposable.agent.agent import Agent
from opposable.app.models import get_model_profile, list_model_kinds, open_model
from opposable.domain.errors import ModelUnavailable
from opposable.models.profile import ModelProfile, get_profile

pytestmark = pytest.mark.anyio


async def test_the_default_model_is_that_of_the_settings(tmp_path: Path) -> None:
    settings = create_settings(tmp_path, model="http://127.0.0.1:9/v1#mine")
    assert (await open_model(settings)).name == "mine"
    assert (await open_model(settings, "http://127.0.0.1:9/v1#other")).name == "other"


@pytest.mark.parametrize(("assist", "assisted"), [(None, False), (True, True), (False, False)])
async def test_assistance_follows_the_settings_or_the_profile(tmp_path: Path, assist: bool, assisted: bool) -> None:
    settings = create_settings(tmp_path, assist=assist)
    model = await open_model(settings, "http://127.0.0.1:9/v1#m")
    assert get_profile(model).assisted is assisted
    assert get_model_profile(settings, "http://127.0.0.1:9/v1#m") == ModelProfile("auto", assisted, images=True)
    assert get_model_profile(settings, "local").assisted is (assist is not False)
    async with Agent(model) as agent:
        assert agent.is_assisted is assisted


async def test_images_follow_the_settings_or_the_profile(tmp_path: Path) -> None:
    name = "http://127.0.0.1:9/v1#m"
    for images, expected in ((None, (True, False)), ("reject", (False, False)), ("placeholder", (False, True))):
        async with aclosing(await open_model(create_settings(tmp_path, images=images), name)) as model:
            profile = get_profile(model)
            assert (profile.images, profile.image_placeholders) == expected


async def test_an_unreachable_server_is_reported_within_seconds(tmp_path: Path) -> None:
    model = await open_model(create_settings(tmp_path), "http://127.0.0.1:9/v1#m")
    async with asyncio.timeout(10):
        with pytest.raises(ModelUnavailable):
            async for _ in model.stream([]):
                pass
    await model.aclose()


def test_the_kinds_of_model_are_listed_with_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-1")
    assert list_model_kinds(create_settings(tmp_path)) == [
        ("local", False, "download it with: opposable models pull"),
        ("openai:NAME", False, "OPENAI_API_KEY is not set"),
        ("qwen:NAME", False, "DASHSCOPE_API_KEY is not set"),
        ("deepseek:NAME", True, "DEEPSEEK_API_KEY is set"),
        ("anthropic:NAME", False, "ANTHROPIC_API_KEY is not set"),
        ("ollama:NAME", None, "a model of the Ollama server on this machine, or of OLLAMA_HOST"),
        ("http://HOST:PORT/v1#NAME", None, "any OpenAI-compatible server; key in OPPOSABLE_API_KEY if required"),
    ]
