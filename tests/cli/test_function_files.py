"""Python files as tools on the command line: allowed once, and again after a change."""

from pathlib import Path

import pytest
from tests.cli.program import Terminal, needs_posix, respond_call, respond_text_deltas, run_program, run_with_model

pytestmark = pytest.mark.anyio

SOURCE = '''
def stock(item: str) -> int:
    """How many pieces of an item are in stock."""
    return {"bolt": 4711}.get(item, 0)

def calculator(number: int) -> int:
    """The name of a built-in tool."""
    return number
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "my_functions.py"
    path.write_text(SOURCE)
    return path


async def test_functions_are_tools_of_every_command(tmp_path, shop):
    added = await run_program(tmp_path, "tools", "add", "my_functions.py", "--yes")
    assert (added.code, added.out) == (0, "✓ stock\n")
    assert added.err == "– calculator: A built-in tool has this name. Rename the function.\n"
    called = await run_program(tmp_path, "tools", "call", "stock", '{"item": "bolt"}')
    assert (called.code, called.out, called.err) == (0, "4711\n", "")
    listed = await run_program(tmp_path, "tools", "list", "--json")
    assert "stock" in [tool["tool_id"] for tool in listed.json["tools"]]
    answers = [respond_call("stock", item="bolt"), respond_text_deltas("4711 pieces.")]
    async with run_with_model(tmp_path, "run", "How many bolts?", answers=answers) as (done, _):
        assert (done.code, done.out) == (0, "4711 pieces.\n")


PRINTING_SOURCE = '''
def stock(item: str) -> int:
    """How many pieces of an item are in stock."""
    print(f"looking for {item}")
    return 4711
'''


@pytest.mark.parametrize("as_json", [False, True])
async def test_what_a_function_prints_goes_to_standard_error(tmp_path, shop, as_json):
    shop.write_text(PRINTING_SOURCE)
    await run_program(tmp_path, "tools", "add", "my_functions.py", "--yes")
    option = ("--json",) if as_json else ()
    called = await run_program(tmp_path, "tools", "call", "stock", '{"item": "bolt"}', *option)
    assert (called.json["data"] if as_json else int(called.out), called.err) == (4711, "looking for bolt\n")
    answers = [respond_call("stock", item="bolt"), respond_text_deltas("4711 ", "pieces.")]
    async with run_with_model(tmp_path, "run", "How many bolts?", *option, answers=answers) as (done, _):
        assert (done.json["text"] if as_json else done.out.rstrip(), done.code) == ("4711 pieces.", 0)
        assert "looking for bolt\n" in done.err


async def test_a_script_must_allow_the_code_to_run(tmp_path, shop):
    shop.write_text(f"from pathlib import Path\nPath('ran').touch()\n{SOURCE}")
    refused = await run_program(tmp_path, "tools", "add", "my_functions.py")
    assert (refused.code, "pass --yes" in refused.err) == (2, True)
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "cache").exists()


async def test_a_changed_file_is_not_run_until_it_is_allowed_again(tmp_path, shop):
    await run_program(tmp_path, "tools", "add", "my_functions.py", "--yes")
    shop.write_text(SOURCE.replace("4711", "12"))
    changed = await run_program(tmp_path, "tools", "call", "stock", '{"item": "bolt"}')
    assert (changed.code, changed.err.splitlines()[0]) == (
        2,
        f"Warning: {shop} has changed, so its tools are not available. Run: opposable tools add {shop}",
    )
    assert (await run_program(tmp_path, "tools", "add", "my_functions.py")).code == 2
    assert (await run_program(tmp_path, "tools", "add", "my_functions.py", "--yes")).code == 0
    assert (await run_program(tmp_path, "tools", "call", "stock", '{"item": "bolt"}')).out == "12\n"


@needs_posix
async def test_the_question_is_asked_once_and_again_after_a_change(tmp_path, shop):
    call = ("tools", "call", "stock", '{"item": "bolt"}')
    dialogs = [
        (("tools", "add", "my_functions.py"), "Allow it? [y/N]", "n\n", "is not allowed", 2),
        (("tools", "add", "my_functions.py"), "Allow it? [y/N]", "y\n", "A built-in tool has this name", 0),
        (("tools", "add", "my_functions.py"), "A built-in tool has this name", "", "", 0),
        (call, "4711", "", "", 0),
    ]
    for dialog in dialogs:
        await hold_dialog(tmp_path, *dialog)
    shop.write_text(SOURCE.replace("4711", "12"))
    await hold_dialog(tmp_path, call, "has changed.", "n\n", "so its tools are not available", 2)
    await hold_dialog(tmp_path, call, "has changed.", "y\n", "12\r\n", 0)
    await hold_dialog(tmp_path, call, "12\r\n", "", "", 0)


async def hold_dialog(folder: Path, args: tuple[str, ...], question: str, reply: str, outcome: str, code: int) -> None:
    terminal = Terminal()
    await terminal.open(folder, *args)
    await terminal.shows(question)
    if reply:
        terminal.type(reply)
        await terminal.shows(outcome)
    assert await terminal.close() == code
