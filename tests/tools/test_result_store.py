"""Results longer than a model gets at once."""

from dataclasses import replace

import pytest

from opposable.domain.call_context import CallContext
from opposable.tools.library import ToolLibrary
from opposable.tools.result_store import ResultStore

pytestmark = pytest.mark.anyio

RUN = CallContext("run1")


def book(pages: int = 100) -> str:
    """A book."""
    return "".join(f"page {n:04}\n" for n in range(pages))


async def test_a_long_result_shows_head_tail_and_how_to_read_on():
    library = ToolLibrary([book], max_result_characters=200)
    result = await library.call("book", {}, RUN)
    assert (len(result.handle), result.handle[:7], result.cut) == (15, "result_", 800)
    assert result.content == (
        f"{book()[:150]}\n…[800 of 1,000 characters left out here; read on with read_result(handle={result.handle!r}, "
        "offset=150)]…\n"
        f"{book()[-50:]}"
    )
    assert result.data == book()
    chinese = await library.call("book", {}, CallContext("run1", language="zh"))
    assert f"用 read_result（handle={chinese.handle!r}, offset=150）继续阅读" in chinese.content


async def test_a_result_is_read_to_its_end_in_parts():
    library = ToolLibrary([book], max_result_characters=400)
    handle = (await library.call("book", {}, RUN)).handle
    read, offset = "", 0
    while offset < 1000:
        part = await library.call("read_result", {"handle": handle, "offset": offset}, RUN)
        assert (part.failure, part.cut, part.handle) == (None, 0, "")
        head, _, body = part.content.partition("\n")
        assert head.startswith(f"[characters {offset:,}–")
        read, offset = read + body, offset + len(body)
    assert read == book()
    assert head.endswith("; this is the end]")
    beyond = await library.call("read_result", {"handle": handle, "offset": 5000}, RUN)
    assert beyond.content == "[characters 1,000–1,000 of 1,000; this is the end]\n"


async def test_a_text_is_found_in_a_result():
    library = ToolLibrary([book], max_result_characters=900)
    handle = (await library.call("book", {}, RUN)).handle
    found = await library.call("read_result", {"handle": handle, "find": "page 0042"}, RUN)
    head, place = found.content.split("\n", 1)
    assert head == "'page 0042' occurs 1 time:"
    assert place.startswith("420: …")
    assert "page 0042" in place
    often = await library.call("read_result", {"handle": handle, "find": "page"}, RUN)
    assert often.content.startswith("'page' occurs 100 times; the first 10:")
    assert (often.cut, often.handle) == (0, "")
    none = await library.call("read_result", {"handle": handle, "find": "chapter"}, RUN)
    assert none.content == "'chapter' occurs 0 times."


@pytest.mark.parametrize("context", [CallContext("run2"), CallContext("")])
async def test_another_run_cannot_read_it(context):
    library = ToolLibrary([book], max_result_characters=200)
    handle = (await library.call("book", {}, RUN)).handle
    result = await library.call("read_result", {"handle": handle}, context)
    assert (result.failure, result.content) == (
        "refused",
        f"This conversation or task has no result under the handle {handle!r}, or it is not stored any more.",
    )
    assert library.read_result(context.run_id, handle) is None
    assert library.read_result("run1", handle) == book()


async def test_a_later_run_of_the_conversation_can_read_it_and_no_other():
    library = ToolLibrary([book], max_result_characters=400)
    first = CallContext("run1", conversation_id="b/c", owner="a")
    handle = (await library.call("book", {}, first)).handle
    later = [replace(first, run_id="run2"), replace(first, owner="bob"), replace(first, conversation_id="c2"), RUN]
    later += [replace(first, owner="a/b", conversation_id="c"), CallContext("a/b/c")]
    results = [await library.call("read_result", {"handle": handle}, context) for context in later]
    assert [result.failure for result in results] == [None, *["refused"] * 5]
    assert library.read_result(first.result_scope, handle) == book()


async def test_a_handle_from_before_a_restart_means_no_other_result():
    context = CallContext("run1", conversation_id="c1")
    handle = (await ToolLibrary([book], max_result_characters=200).call("book", {}, context)).handle
    library = ToolLibrary([book], max_result_characters=200)
    assert (await library.call("book", {}, context)).handle != handle
    assert (await library.call("read_result", {"handle": handle}, context)).failure == "refused"


async def test_the_results_of_runs_are_stored_also_those_of_failed_calls():
    def broken() -> None:
        """Break."""
        raise ValueError(book())

    library = ToolLibrary([book, broken], max_result_characters=900)
    assert (await library.call("book", {})).handle == ""
    failed = await library.call("broken", {}, RUN)
    assert failed.failure == "failed"
    found = await library.call("read_result", {"handle": failed.handle, "find": "page 0042"}, RUN)
    assert found.content.startswith("'page 0042' occurs 1 time:")


def test_the_store_removes_the_oldest_results():
    shelf = ResultStore(max_characters=100)
    handles = [shelf.put("r", "x" * 40) for _ in range(3)]
    assert [shelf.get("r", handle) is None for handle in handles] == [True, False, False]
    assert shelf.put("r", "x" * 101) == ""


async def test_an_owners_tool_may_be_called_like_one_of_the_librarys():
    def read_result(handle: str) -> str:
        """The owner's."""
        return "owner's"

    library = ToolLibrary([read_result, book], max_result_characters=200)
    [name, _] = library.names
    assert name.startswith("read_result_")
    assert (await library.call(name, {"handle": "x"})).content == "owner's"
    assert (await library.call_action("read_result", "", {"handle": "x"})).content == "owner's"
    handle = (await library.call("book", {}, RUN)).handle
    assert (await library.call("read_result", {"handle": handle}, RUN)).content.startswith("[characters 0")
