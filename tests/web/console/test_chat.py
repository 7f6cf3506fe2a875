"""Chat in a real browser: streaming, calls, approval, stop, broken connections, hostile output."""

import asyncio
import base64
import re

import aiohttp
import pytest
from playwright.async_api import expect
from tests.waiting import wait_until
from tests.web.console.serving import PIXEL, open_proxy, serve_console

from opposable.domain.messages import user_message
from opposable.domain.records import Conversation, ConversationTurn
from opposable.domain.specs import AgentSpec, AgentToolBinding, FunctionToolSpec

pytestmark = pytest.mark.anyio


async def send(page, text: str) -> None:
    await page.get_by_role("textbox", name="Write a message").fill(text)
    await page.get_by_role("button", name="Send").click()


async def test_a_message_is_answered_and_stays_after_a_reload(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await send(page, "run parallel calls")
        await expect(page.locator("[data-tool-call]")).to_have_count(2)
        await expect(page.get_by_role("cell", name="coffee")).to_be_visible()
        await page.locator("[data-tool-call=calculator] button").first.click()
        await expect(page.get_by_role("region", name="Result")).to_contain_text('"result": 100')
        await page.reload()
        await expect(page.get_by_role("cell", name="coffee")).to_be_visible()
        await expect(page.locator("[data-tool-call]")).to_have_count(2)


async def test_conversations_are_found_renamed_and_deleted(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await send(page, "good morning")
        row = page.get_by_role("link", name="good morning")
        await expect(row).to_be_visible()
        await page.get_by_role("button", name="Actions for good morning").click()
        await page.get_by_role("menuitem", name="Rename").click()
        await page.get_by_role("textbox", name="Title").fill("Greeting")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("link", name="Greeting")).to_be_visible()
        await page.get_by_role("textbox", name="Search conversations").fill("nothing like it")
        await expect(page.get_by_text("Nothing matches.")).to_be_visible()
        await page.get_by_role("textbox", name="Search conversations").fill("greet")
        await page.get_by_role("button", name="Actions for Greeting").click()
        await page.get_by_role("menuitem", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No conversations yet.")).to_be_visible()


@pytest.mark.parametrize(("decision", "outcome"), [("Approve", "Succeeded"), ("Deny", "Not run")])
async def test_a_call_waits_for_the_decision_on_its_arguments(browser, tmp_path, decision, outcome):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open("/chat?agent=careful")
        await send(page, "calculate")
        card = page.get_by_role("region", name="Allow calculator to run with exactly these arguments?")
        await expect(card).to_contain_text("2340*17/100")
        await card.get_by_role("button", name=decision).click()
        await expect(page.get_by_role("img", name=outcome)).to_be_visible()
        await expect(page.get_by_role("cell", name="coffee")).to_be_visible()


async def test_an_opened_conversation_goes_on_with_its_agent(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open("/chat?agent=careful")
        await send(page, "calculate")
        await page.get_by_role("button", name="Deny").click()
        await expect(page.get_by_role("cell", name="coffee")).to_be_visible()
        await page.get_by_role("link", name="New chat").click()
        await expect(page.get_by_role("combobox", name="Agent")).to_have_value("Default")
        await page.get_by_role("link", name="calculate").click()
        await expect(page.get_by_role("combobox", name="Agent")).to_have_value("Careful clerk")
        await page.goto(console.url + "/chat")
        await page.get_by_role("link", name="calculate").click()
        await expect(page.get_by_role("combobox", name="Agent")).to_have_value("Careful clerk")
        await send(page, "calculate once more")
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()


async def test_the_chat_follows_a_fast_answer_and_shows_a_message_that_is_sent(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        log = page.get_by_role("log")
        rest = "element => element.scrollHeight - element.scrollTop - element.clientHeight"
        await send(page, "\n\n".join(f"Line {number} of a long text." for number in range(300)))
        await expect(page.get_by_role("link", name="Details")).to_be_visible()
        assert await log.evaluate(rest) < 60
        await log.evaluate("element => element.scrollTo(0, 0)")
        await page.wait_for_timeout(200)  # until the event of scrolling was handled
        await send(page, "short")
        await expect(page.get_by_text("You said: short")).to_be_in_viewport()


async def test_a_running_conversation_is_listed_and_a_draft_stays(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await send(page, "slow")
        await expect(page.get_by_text("word word")).to_be_visible()
        await page.get_by_role("textbox", name="Write a message").fill("and then")
        await page.get_by_role("link", name="New chat").click()
        await expect(page.get_by_role("textbox", name="Write a message")).to_have_value("")
        await page.get_by_role("link", name="slow").click()
        await expect(page.get_by_text("word word")).to_be_visible()
        await expect(page.get_by_role("textbox", name="Write a message")).to_have_value("and then")


async def test_a_table_breaks_no_number(browser, tmp_path):
    columns = [f"{number},234.50" for number in range(10)]
    table = f"|{'|'.join(columns)}|\n|{'---|' * 10}\n|{'|'.join(columns)}|"
    async with serve_console(browser, tmp_path) as console:
        page = await console.open(viewport={"width": 390, "height": 800})
        await send(page, f"so:\n\n{table}")
        cell = page.locator("td").first
        await expect(cell).to_be_visible()
        assert (
            await cell.evaluate(
                "cell => { const text = document.createRange(); text.selectNodeContents(cell);"
                " return text.getClientRects().length }"
            )
            == 1
        )
        assert await page.evaluate("document.scrollingElement.scrollWidth") == 390


async def test_a_run_is_stopped(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await send(page, "slow")
        await expect(page.get_by_text("word word")).to_be_visible()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_text("Stopped.")).to_be_visible()
        await wait_until(lambda: console.service.runner.active_count == 0)


async def test_a_failed_run_is_retried_in_its_conversation(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await send(page, "unreachable")
        await expect(page.get_by_role("alert", name="The run failed")).to_contain_text("out of memory")
        row = page.get_by_role("link", name="unreachable")
        await expect(row).to_be_visible()
        await page.goto(console.url + "/chat")
        await row.click()
        await expect(page.get_by_role("alert", name="The run failed")).to_be_visible()
        console.model.is_reachable = True
        await page.get_by_role("button", name="Try again").click()
        await expect(page.get_by_text("You said: unreachable")).to_be_visible()
        await expect(page.get_by_role("article")).to_have_count(2)
        await expect(row).to_have_count(1)


async def test_a_broken_connection_is_resumed(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console, open_proxy(console.url) as (url, proxy):
        page = await console.open(url)
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))  # `expect_request` may subscribe too late
        await send(page, "slow")
        await expect(page.get_by_text("word word")).to_be_visible()
        proxy.break_connections()
        await wait_until(lambda: any(url.endswith("/events") for url in requests))
        before = len(await page.get_by_role("article").inner_text())
        await expect(page.get_by_role("article")).to_have_text(re.compile(f"[\\s\\S]{{{before + 50}}}"))
        text = await page.get_by_role("article").inner_text()
        assert set(text.split()) == {"slow", "word"}
        assert console.service.runner.active_count == 1


async def test_chats_that_wait_leave_the_browser_its_connections(browser, tmp_path):
    tasks = [f"calculate {number}" for number in range(7)]  # browsers open six connections to a server
    async with serve_console(browser, tmp_path) as console:
        spec = (await console.service.store.agents.get("careful")).spec
        for task in tasks:
            await console.service.chat(spec, task, conversation_id=task.replace(" ", "-"), is_new_conversation=True)
        page = await console.open("/runs")
        for task in tasks:
            await page.get_by_role("link", name=task).click()
            await expect(page.get_by_role("button", name="Stop the run")).to_be_visible()
            await page.get_by_role("navigation").get_by_role("link", name="Runs").click()
        await page.get_by_role("tab", name="Approvals").click()
        await expect(page.get_by_role("button", name="Approve")).to_have_count(7)


@pytest.mark.parametrize(("key_code", "articles"), [(229, 0), (13, 1)])
async def test_the_enter_that_ends_a_composition_sends_nothing(browser, tmp_path, key_code, articles):
    # As Safari reports it: after the end of the composition, with the key code of input methods.
    enter = {"key": "Enter", "keyCode": key_code, "bubbles": True, "cancelable": True}
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        field = page.get_by_role("textbox", name="Write a message")
        await field.fill("ni hao")
        await field.evaluate("(field, enter) => field.dispatchEvent(new KeyboardEvent('keydown', enter))", enter)
        await page.wait_for_timeout(300)
        await expect(page.get_by_role("article")).to_have_count(articles)


async def test_files_that_are_added_while_others_are_read_stay(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await page.get_by_role("textbox", name="Write a message").evaluate(
            """(field, bytes) => {
                for (const name of ["first.png", "second.png"]) {
                    const data = new DataTransfer();
                    data.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
                    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
                }
            }""",
            list(PIXEL),
        )
        await expect(page.get_by_role("img", name="second.png")).to_be_visible()
        await expect(page.get_by_role("img", name="first.png")).to_be_visible()


async def test_a_run_that_is_listed_before_its_id_is_known_is_shown_once(browser, tmp_path):
    listed = {"run_id": "r1", "status": "running", "task": "hello", "started_at": "2026-11-25T10:00:00Z"}
    is_released = asyncio.Event()

    async def wait(route) -> None:
        await is_released.wait()
        await route.continue_()

    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await page.route("**/api/agent", wait)
        await page.route("**/api/runs?*", lambda route: route.fulfill(json={"items": [listed], "next": ""}))
        async with page.expect_response("**/api/runs?*"):
            await send(page, "hello")
        await page.wait_for_timeout(500)  # until the listed run is on the page
        await expect(page.get_by_role("article")).to_have_count(1)
        is_released.set()
        await expect(page.get_by_text("You said: hello")).to_be_visible()


async def test_images_are_attached_pasted_and_still_there_after_a_reload(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await page.locator("input[type=file]").set_input_files(
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"text"}
        )
        await expect(page.get_by_role("alert")).to_contain_text("“notes.txt” cannot be attached")
        await page.locator("input[type=file]").set_input_files(
            {"name": "photo.png", "mimeType": "image/png", "buffer": PIXEL}
        )
        await expect(page.get_by_role("img", name="photo.png")).to_be_visible()
        await page.get_by_role("textbox", name="Write a message").evaluate(
            """(field, bytes) => {
                const data = new DataTransfer();
                data.items.add(new File([new Uint8Array(bytes)], "pasted.png", { type: "image/png" }));
                field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
            }""",
            list(PIXEL),
        )
        await expect(page.get_by_role("img", name="pasted.png")).to_be_visible()
        await send(page, "what is this?")
        await expect(page.get_by_text("I see 2 attachments.")).to_be_visible()
        await page.reload()
        await expect(page.locator("article img")).to_have_count(2)
        loaded = "[...document.querySelectorAll('article img')].every((image) => image.naturalWidth === 1)"
        await page.wait_for_function(loaded)
        await page.goto(console.url + "/chat?model=other")
        await expect(page.get_by_role("button", name="This model takes text only")).to_be_disabled()


async def test_images_of_tools_and_answers_are_shown_and_remote_ones_are_not_loaded(browser, tmp_path):
    module = "tests.web.console.serving"
    async with serve_console(browser, tmp_path, modules=(module,)) as console:
        spec = FunctionToolSpec(tool_id="draw", module_path=module, function_name="draw")
        await console.service.store.tools.add(spec)
        await console.service.refresh()
        painter = AgentSpec(agent_id="painter", tools=(AgentToolBinding(tool_id="draw"),))
        await console.service.store.agents.add(painter)
        page = await console.open("/chat?agent=painter")
        await send(page, "draw")
        call = page.locator("[data-tool-call=draw]")
        await expect(call.locator("img")).to_have_count(1)
        await expect(call.locator("[data-blocked-image]")).to_have_count(1)
        await call.get_by_role("button", name="Open Image").click()
        await expect(page.get_by_role("dialog").locator("img")).to_be_visible()
        await page.keyboard.press("Escape")
        await send(page, f"![drawn](data:image/png;base64,{base64.b64encode(PIXEL).decode()})")
        await expect(page.locator(".markdown").get_by_role("img", name="drawn")).to_be_visible()
        await page.get_by_role("link", name="Details").first.click()
        await expect(page.get_by_role("region", name="Timeline").locator("img")).to_have_count(1)


async def test_hostile_output_is_shown_as_text(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        await send(page, "hostile")
        await expect(page.get_by_text("image not loaded: beacon")).to_be_visible()
        await page.locator("[data-tool-call=echo] button").first.click()
        await expect(page.get_by_role("region", name="Result")).to_contain_text("<script>window.hacked = 1</script>")
        assert await page.evaluate("window.hacked") is None
        assert await page.locator("a[href^='javascript']").count() == 0
        assert [url for url in requests if not url.startswith(console.url)] == []


async def test_a_long_conversation_shows_its_latest_turns_and_earlier_ones_on_request(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console, aiohttp.ClientSession(console.url) as session:
        for number in range(22):
            body = {"message": f"turn {number}", "conversation_id": "long", "stream": False}
            async with session.post("/api/agent", json=body) as response:
                assert response.ok
        page = await console.open("/settings")
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        await page.goto(console.url + "/chat/long")
        turns = page.get_by_role("article")
        await expect(turns).to_have_count(20)
        await expect(page.get_by_text("You said: turn 2", exact=True)).to_be_visible()
        assert sum("/agent/conversations?" in url for url in requests) == 1
        await page.get_by_role("log").evaluate("log => log.scrollTo(0, 0)")
        await page.get_by_role("button", name="Earlier messages").click()
        await expect(page.get_by_text("You said: turn 0", exact=True)).to_be_visible()
        await expect(turns).to_have_count(22)
        await expect(page.get_by_role("button", name="Earlier messages")).to_be_hidden()
        await expect(page.get_by_text("turn 2", exact=True)).to_be_in_viewport()


async def test_an_ended_run_that_is_being_loaded_cannot_be_stopped(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open()
        await send(page, "good morning")
        await expect(page.get_by_role("button", name="Try again")).to_be_visible()
        await page.route("**/events", lambda route: None)
        await page.reload()
        await expect(page.get_by_role("article").get_by_role("status", name="Loading")).to_be_visible()
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()


async def test_all_conversations_are_found_and_the_first_of_many_are_drawn(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        turns = [
            ConversationTurn(f"t{number}", Conversation(f"c{number}", title=f"number {number}"), (user_message("hi"),))
            for number in range(501)
        ]
        await console.service.store.conversations.append_turns(turns)
        page = await console.open("/chat")
        rows = page.get_by_role("link", name="number")
        await expect(rows).to_have_count(100)
        await page.get_by_role("button", name="Load more (401)").click()
        await expect(rows).to_have_count(200)
        for number in (0, 500):
            await page.get_by_role("textbox", name="Search conversations").fill(f"number {number}")
            await expect(page.get_by_role("link", name=re.compile(rf"^number {number}\b"))).to_be_visible()


async def test_the_number_of_waiting_calls_is_shown_in_full(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        spec = (await console.service.store.agents.get("careful")).spec
        for number in range(12):
            await console.service.chat(
                spec, f"calculate {number}", conversation_id=f"c{number}", is_new_conversation=True
            )
        page = await console.open("/runs?tab=approvals")
        await expect(page.get_by_role("button", name="Approve")).to_have_count(12)
        number = page.get_by_role("navigation").get_by_text("12", exact=True)
        await expect(number).to_be_visible()
        assert await number.evaluate("label => label.scrollWidth <= label.clientWidth")
