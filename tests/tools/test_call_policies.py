"""The policies of calls: approval, cache, circuit breaker, rate limits and retries."""

import asyncio

import pytest

from opposable.domain.call_context import ApprovalRequest, Approved, CallContext, Denied
from opposable.domain.content import DictWithMedia, ImagePart
from opposable.domain.errors import ToolFailed, ToolRefused, ToolUnavailable
from opposable.domain.rate_limits import InProcessRateLimiter
from opposable.domain.specs import AgentToolBinding, FunctionToolSpec, RateLimit
from opposable.domain.tools import ToolDefinition
from opposable.tools.circuit_breaker import CircuitBreakerOptions
from opposable.tools.function import FunctionTool, tools_from_object
from opposable.tools.library import ToolLibrary
from opposable.tools.retries import ToolRetryOptions

pytestmark = pytest.mark.anyio

FAST_RETRIES = ToolRetryOptions(max_attempts=3, first_wait_seconds=0.001, max_wait_seconds=0.002)


class ManualClock:
    """A clock that moves only when a test sets `now`."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class FlakyService:
    """A service that answers from a script; `seen` lists the arguments of its calls."""

    def __init__(self, *script):
        self.script = list(script)
        self.seen = []

    async def fetch(self, key: str = "", context: CallContext = CallContext()) -> str:
        """Fetch a thing from the far service.

        Args:
            key: which.
            context: the call's.
        """
        self.seen.append((key, context.idempotency_key))
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(said, Exception):
            raise said
        return said


def create_library(
    service, *, more=(), clock=None, approve=None, breaking=CircuitBreakerOptions(), limiter=None, **rules
):
    one = FunctionTool(service.fetch, **rules)
    extra = {} if clock is None else {"clock": clock}
    return ToolLibrary(
        [one, *more], retries=FAST_RETRIES, approve=approve, circuit_breaker=breaking, rate_limiter=limiter, **extra
    )


DOWN = ToolUnavailable("The far service is down.")


async def test_a_circuit_opens_allows_one_trial_call_and_closes():
    clock, service = ManualClock(), FlakyService(DOWN)

    async def fetch_copy(key: str = "") -> str:
        """Fetch a thing from the copy of the far service."""
        return "copy"

    library = create_library(service, more=[fetch_copy], clock=clock, breaking=CircuitBreakerOptions(0.5, 3, 60, 30))
    for _ in range(3):
        assert (await library.call("fetch", {})).content == "The far service is down."
    assert (library.get_health("fetch").state, library.get_health("fetch").retry_after_seconds) == ("open", 30)
    refused = await library.call("fetch", {})
    assert (refused.failure, refused.attempts, len(service.seen)) == ("unavailable", 0, 3)
    assert refused.content == (
        "Not run: fetch did not answer several times and is out of service; try it again in 30 seconds."
        " These may do instead: fetch_copy."
    )
    clock.now += 31
    assert library.get_health("fetch").state == "half_open"
    assert (await library.call("fetch", {})).content == "The far service is down."
    assert (library.get_health("fetch").state, len(service.seen)) == ("open", 4)
    clock.now += 31
    service.script = ["here"]
    assert (await library.call("fetch", {})).content == "here"
    health = library.get_health("fetch")
    assert (health.state, health.calls, health.failures) == ("ok", 6, {"unavailable": 5})
    assert [found.name for found in library.find_alternatives("fetch")] == ["fetch_copy"]
    assert library.find_alternatives("fetch", failed_tool_ids=["fetch_copy"]) == []


async def test_while_half_open_one_call_is_tried_and_a_cancelled_one_decides_nothing():
    clock, gate = ManualClock(), asyncio.Event()

    async def far() -> str:
        """Far."""
        if clock.now < 1001:
            raise DOWN
        await gate.wait()
        return "here"

    library = ToolLibrary([far], circuit_breaker=CircuitBreakerOptions(0.5, 2, 60, 30), clock=clock)
    await library.call_many([("far", {})] * 2)
    clock.now += 40
    trial = asyncio.create_task(library.call("far", {}))
    await asyncio.sleep(0)
    others = await library.call_many([("far", {})] * 3)
    assert [one.attempts for one in others] == [0, 0, 0]
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    gate.set()
    assert (await library.call("far", {})).content == "here"
    assert library.get_health("far").state == "ok"


async def test_a_call_from_before_the_circuit_opened_does_not_decide_it():
    clock, gates = ManualClock(), {"early": asyncio.Event(), "trial": asyncio.Event()}

    async def far(key: str = "") -> str:
        """Far."""
        if key not in gates:
            raise DOWN
        await gates[key].wait()
        return "here"

    library = ToolLibrary([far], circuit_breaker=CircuitBreakerOptions(0.5, 2, 60, 30), clock=clock)
    await library.call("far", {})
    early = asyncio.create_task(library.call("far", {"key": "early"}))
    await asyncio.sleep(0)
    await library.call("far", {})
    clock.now += 40
    trial = asyncio.create_task(library.call("far", {"key": "trial"}))
    await asyncio.sleep(0)
    gates["early"].set()
    assert (await early).content == "here"
    assert library.get_health("far").state == "half_open"
    assert (await library.call("far", {})).attempts == 0
    gates["trial"].set()
    assert (await trial).content == "here"
    assert library.get_health("far").state == "ok"


@pytest.mark.parametrize("error", [ToolRefused("no"), ToolFailed("broke"), ValueError("x")])
async def test_failures_with_an_answer_do_not_open_the_circuit(error):
    library = create_library(FlakyService(error), breaking=CircuitBreakerOptions(0.5, 2, 60, 30))
    for _ in range(10):
        await library.call("fetch", {})
        await library.call("fetch", {"nonsense": 1})
    assert library.get_health("fetch").state == "ok"


async def test_time_outs_open_a_circuit_and_good_answers_keep_it_closed():
    async def sometimes(slow: bool) -> str:
        """Be slow or not."""
        await asyncio.sleep(30 if slow else 0)
        return "ok"

    library = ToolLibrary([FunctionTool(sometimes, timeout=0.3)], circuit_breaker=CircuitBreakerOptions(0.5, 4, 60, 30))
    for slow in (True, False, False, False, True):
        await library.call("sometimes", {"slow": slow})
    assert library.get_health("sometimes").state == "ok"
    await library.call("sometimes", {"slow": True})
    assert library.get_health("sometimes").state == "open"
    assert library.get_health("sometimes").failures == {"timeout": 3}


class Station:
    """A station."""

    async def report(self) -> str:
        """Report at length."""
        await asyncio.sleep(9)
        return "late"

    def read(self, is_lost: bool = False) -> str:
        """Read a value."""
        if is_lost:
            raise ConnectionError("the line is down")
        return "5"


async def test_a_time_out_counts_for_its_action_and_a_lost_connection_for_all():
    library = ToolLibrary(timeout=0.2, circuit_breaker=CircuitBreakerOptions(0.5, 2))
    library.register(
        FunctionToolSpec(tool_id="station", module_path="m", class_name="Station"),
        tools_from_object(Station(), "station"),
    )
    assert [(await library.call("station.report", {})).failure for _ in range(3)] == ["timeout"] * 2 + ["unavailable"]
    assert library.get_health("station").state == "open"
    assert (await library.call("station.read", {})).data == "5"
    failures = [(await library.call("station.read", {"is_lost": True})).failure for _ in range(2)]
    refused = await library.call("station.read", {})
    assert (failures, refused.failure) == (["unavailable"] * 2, "unavailable")
    assert "out of service" in refused.content


async def test_a_trial_call_that_times_out_opens_the_shared_circuit_again():
    now = 0.0
    library = ToolLibrary(timeout=0.2, circuit_breaker=CircuitBreakerOptions(0.5, 2), clock=lambda: now)
    library.register(
        FunctionToolSpec(tool_id="station", module_path="m", class_name="Station"),
        tools_from_object(Station(), "station"),
    )
    for _ in range(2):
        await library.call("station.read", {"is_lost": True})
    now = 31.0
    assert (await library.call("station.report", {})).failure == "timeout"
    assert (await library.call("station.read", {})).failure == "unavailable"
    now = 62.0
    assert (await library.call("station.read", {})).data == "5"
    assert library.get_health("station").state == "ok"


async def test_without_a_circuit_breaker_a_tool_is_never_out_of_service():
    library = create_library(FlakyService(DOWN), breaking=None)
    for _ in range(20):
        await library.call("fetch", {})
    assert library.get_health("fetch").state == "ok"


async def test_only_an_idempotent_tool_is_tried_again():
    plain, again = FlakyService(DOWN, "here"), FlakyService(DOWN, DOWN, "here")
    one = await create_library(plain, rate_limit=RateLimit(calls=99)).call("fetch", {})
    assert (one.failure, one.attempts, len(plain.seen)) == ("unavailable", 1, 1)
    two = await create_library(again, idempotent=True).call("fetch", {})
    assert (two.failure, two.attempts, two.content) == (None, 3, "here")
    keys = {key for _, key in again.seen}
    assert len(keys) == 1
    assert all(keys)


async def test_the_key_of_a_call_is_its_callers_where_there_is_one():
    service = FlakyService(DOWN, "here")
    await create_library(service, idempotent=True).call("fetch", {}, CallContext(idempotency_key="mine"))
    assert service.seen == [("", "mine"), ("", "mine")]


@pytest.mark.parametrize("error", [ToolRefused("no"), ToolFailed("broke"), ValueError("x")])
async def test_only_unanswered_calls_are_retried(error):
    service = FlakyService(error, "here")
    result = await create_library(service, idempotent=True).call("fetch", {})
    assert (result.attempts, len(service.seen)) == (1, 1)
    assert result.failure in ("refused", "failed")


async def test_retries_end_with_the_calls_time():
    service = FlakyService(DOWN)
    one = FunctionTool(service.fetch, idempotent=True, timeout=0.2)
    library = ToolLibrary(
        [one],
        retries=ToolRetryOptions(max_attempts=50, first_wait_seconds=0.05, max_wait_seconds=0.1),
        circuit_breaker=None,
    )
    async with asyncio.timeout(5):
        result = await library.call("fetch", {})
    assert result.failure == "unavailable"
    assert 1 < result.attempts < 10
    never = ToolLibrary(
        [one],
        retries=ToolRetryOptions(max_attempts=50, first_wait_seconds=10, max_wait_seconds=10),
        circuit_breaker=None,
    )
    assert (await never.call("fetch", {})).attempts == 1


async def test_a_time_out_of_a_later_attempt_names_the_time_of_the_call():
    attempts = []

    async def fetch() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise ToolUnavailable("busy")
        await asyncio.sleep(10)

    tool = FunctionTool(fetch, idempotent=True, timeout=0.5)
    library = ToolLibrary([tool], retries=ToolRetryOptions(first_wait_seconds=0.1, max_wait_seconds=0.1))
    result = await library.call("fetch", {})
    assert (result.failure, result.attempts) == ("timeout", 2)
    assert result.content.startswith("fetch did not finish within 0.5 seconds")


async def test_a_call_that_reported_deltas_is_not_retried():
    tries = []

    async def far(context: CallContext) -> str:
        """Far."""
        tries.append(1)
        context.report("half")
        raise DOWN

    deltas = []
    library = ToolLibrary([FunctionTool(far, idempotent=True)], retries=FAST_RETRIES)
    result = await library.call("far", {}, CallContext(report=deltas.append))
    assert (result.attempts, deltas, len(tries)) == (1, ["half"], 1)


async def test_a_rate_limit_says_when_and_holds_under_concurrency():
    clock, service = ManualClock(), FlakyService("here")
    library = create_library(service, clock=clock, rate_limit=RateLimit(calls=3, seconds=10))
    results = await library.call_many([("fetch", {})] * 20, max_concurrency=20)
    assert [one.failure for one in results].count(None) == 3
    assert len(service.seen) == 3
    late = next(one for one in results if one.failure)
    assert (late.failure, late.attempts) == ("rate_limited", 0)
    assert late.content == "Not run: fetch may be called 3 times in 10 seconds; it can be called again in 10.0 seconds."
    clock.now += 9.9
    assert (await library.call("fetch", {})).failure == "rate_limited"
    assert (await library.call("fetch", {}, CallContext(language="zh"))).content == (
        "没有执行：工具 fetch 每 10 秒最多调用 3 次，请在 0.1 秒后重试。"
    )
    clock.now += 0.1
    assert (await library.call("fetch", {})).failure is None


async def test_a_shared_limiter_counts_for_several_libraries():
    clock = ManualClock()
    shared = InProcessRateLimiter(clock)
    rule = RateLimit(calls=1, seconds=10)
    first, second = (create_library(FlakyService("x"), limiter=shared, rate_limit=rule) for _ in range(2))
    assert (await first.call("fetch", {})).failure is None
    assert (await second.call("fetch", {})).failure == "rate_limited"


async def test_calls_are_refused_while_the_rate_limiter_cannot_be_reached():
    class Gone:
        async def hit(self, key, limit):
            raise ToolUnavailable("The limiter does not answer.")

    service = FlakyService("here")
    result = await create_library(service, limiter=Gone(), rate_limit=RateLimit(calls=1)).call("fetch", {})
    assert (result.failure, result.content, service.seen) == ("unavailable", "The limiter does not answer.", [])


async def test_results_are_cached_by_arguments_until_they_expire():
    clock, service = ManualClock(), FlakyService("one", "two", "three")
    library = create_library(service, clock=clock, idempotent=True, cache_seconds=60)
    results = [await library.call("fetch", {"key": key}) for key in ("a", "b", "a")]
    assert [(one.content, one.cached) for one in results] == [("one", False), ("two", False), ("one", True)]
    clock.now += 60
    late = await library.call("fetch", {"key": "a"})
    assert (late.content, late.cached) == ("three", False)


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_replaced_tool_does_not_return_cached_results_of_the_earlier_one(is_replaced):
    def create_tool(answer: str) -> FunctionTool:
        return FunctionTool(lambda: answer, tool_id="price")

    spec = FunctionToolSpec(tool_id="price", module_path="m", idempotent=True, cache_seconds=60)
    library = ToolLibrary()
    library.register(spec, [create_tool("staging")])
    bound = library.with_bindings([AgentToolBinding(tool_id="price")])
    assert [(await one.call("price", {})).cached for one in (library, bound)] == [False, True]
    if is_replaced:
        library.replace(spec, [create_tool("production")])
    else:
        library.unregister("price")
        library.register(spec, [create_tool("production")])
    results = [await one.call("price", {}) for one in (library, bound)]
    assert [(one.content, one.cached) for one in results] == [("production", False), ("production", True)]


async def test_results_that_depend_on_the_context_are_not_shared():
    def list_orders(context: CallContext) -> str:
        return f"orders of {context.owner} in {context.language}"

    library = ToolLibrary([FunctionTool(list_orders, idempotent=True, cache_seconds=60)])
    contexts = [CallContext(owner=owner, language=language) for owner in ("a", "b") for language in ("en", "zh")]
    results = [await library.call("list_orders", {}, context) for context in [*contexts, *contexts]]
    assert [one.content for one in results[:4]] == [f"orders of {one.owner} in {one.language}" for one in contexts]
    assert [one.cached for one in results] == [False] * 4 + [True] * 4


async def test_failures_are_never_cached():
    service = FlakyService(ToolFailed("broke"), "here", "there")
    library = create_library(service, idempotent=True, cache_seconds=60)
    results = [await library.call("fetch", {}) for _ in range(3)]
    assert [(one.failure, one.content, one.cached) for one in results] == [
        ("failed", "broke", False),
        (None, "here", False),
        (None, "here", True),
    ]


async def test_results_of_tools_with_effects_are_never_cached():
    service = FlakyService("one", "two")
    library = create_library(service, cache_seconds=60, needs_approval=False)
    assert [(await library.call("fetch", {})).content for _ in range(2)] == ["one", "two"]


async def test_a_result_with_an_image_is_never_cached():
    pixel = ImagePart(data=b"\x89PNG", media_type="image/png")

    async def chart() -> list:
        """Draw a chart."""
        return ["two bars", pixel]

    library = ToolLibrary([FunctionTool(chart, idempotent=True, cache_seconds=60)])
    assert [(await library.call("chart", {})).media for _ in range(2)] == [(pixel,)] * 2


async def test_the_text_and_the_value_of_a_cached_result_are_the_same_as_before():
    def read() -> DictWithMedia:
        value = DictWithMedia({"result": "a\nb"})
        value.text = "a\nb"
        return value

    library = ToolLibrary([FunctionTool(read, idempotent=True, cache_seconds=60)])
    results = [await library.call("read", {}) for _ in range(2)]
    assert [(one.content, one.data, one.cached) for one in results] == [
        ("a\nb", {"result": "a\nb"}, False),
        ("a\nb", {"result": "a\nb"}, True),
    ]


async def test_a_caller_cannot_change_a_cached_value():
    async def rows() -> dict:
        """Rows."""
        return {"rows": [1, 2]}

    library = ToolLibrary([FunctionTool(rows, idempotent=True, cache_seconds=60)])
    for _ in range(3):
        result = await library.call("rows", {})
        assert result.data == {"rows": [1, 2]}
        result.data["rows"].append(3)


async def test_old_cached_results_are_removed_for_new_ones():
    from opposable.tools.result_cache import ResultCache

    cache = ResultCache(ManualClock(), max_characters=1000)
    for n in range(20):
        cache.put((0, "", "", f"{n:02}"), "x" * 98, None, 60)
        assert cache.get((0, "", "", "00")) is not None
    assert [n for n in range(20) if cache.get((0, "", "", f"{n:02}")) is not None] == [0, *range(11, 20)]


async def test_without_an_approval_handler_a_call_that_needs_approval_is_denied():
    service = FlakyService("here")
    library = create_library(service, needs_approval=True)
    result = await library.call("fetch", {})
    assert (result.failure, result.content) == (
        "denied",
        "Not run: fetch needs a person's approval, and none can be asked here.",
    )
    chinese = await library.call("fetch", {}, CallContext(language="zh"))
    assert chinese.content == "没有执行：工具 fetch 需要人工批准，而这里无法请求批准。"
    assert service.seen == []


@pytest.mark.parametrize("approve", [lambda request: Approved(), Approved])
async def test_an_approval_handler_that_fails_denies_the_call_and_is_logged(approve, caplog):
    result = await create_library(FlakyService("here"), needs_approval=True, approve=approve).call("fetch", {})
    assert result.failure == "denied"
    [record] = caplog.records
    assert record.getMessage().startswith("The approval handler failed, so fetch does not run: TypeError: ")


async def test_approval_is_requested_for_valid_arguments_only():
    asked = []

    async def approve(request: ApprovalRequest):
        asked.append((request.spec.tool_id, request.name, request.arguments, request.context.run_id))
        return Approved() if request.arguments.get("key") == "good" else Denied("Not on a Friday.")

    service = FlakyService("here")
    library = create_library(service, needs_approval=True, approve=approve)
    good = await library.call("fetch", {"key": "good"}, CallContext("r1"))
    bad = await library.call("fetch", {"key": "bad"}, CallContext("r1"))
    wrong = await library.call("fetch", {"kee": 1}, CallContext("r1"))
    assert (good.content, wrong.failure) == ("here", "invalid_arguments")
    assert (bad.failure, bad.content) == (
        "denied",
        "Not run: a person did not approve this call of fetch: Not on a Friday.",
    )
    assert asked == [("fetch", "fetch", {"key": "good"}, "r1"), ("fetch", "fetch", {"key": "bad"}, "r1")]
    assert [key for key, _ in service.seen] == ["good"]


async def test_the_runs_own_approver_goes_before_the_librarys():
    async def yes(request):
        return Approved()

    async def no(request):
        return Denied()

    library = create_library(FlakyService("here"), needs_approval=True, approve=yes)
    result = await library.call("fetch", {}, CallContext(approve=no))
    assert (result.failure, result.content) == ("denied", "Not run: a person did not approve this call of fetch.")


async def test_the_arguments_approved_are_those_that_run():
    given = {"key": "small"}

    async def approve(request):
        request.arguments["key"] = "huge"
        given["key"] = "other"
        await asyncio.sleep(0)
        return Approved()

    service = FlakyService("here")
    await create_library(service, needs_approval=True, approve=approve).call("fetch", given)
    assert [key for key, _ in service.seen] == ["small"]


async def test_the_time_of_an_approval_does_not_count_for_the_timeout():
    async def slow(request):
        await asyncio.sleep(0.1)
        return Approved()

    library = ToolLibrary([FunctionTool(FlakyService("here").fetch, needs_approval=True, timeout=0.05)], approve=slow)
    assert (await library.call("fetch", {})).content == "here"


async def test_calls_are_refused_if_the_approval_handler_raises():
    async def broken(request):
        raise RuntimeError("the page is gone")

    service = FlakyService("here")
    result = await create_library(service, needs_approval=True, approve=broken).call("fetch", {})
    assert (result.failure, service.seen) == ("denied", [])


@pytest.mark.parametrize("decision", [True, None, "yes"])
async def test_a_decision_of_another_type_denies_the_call(decision):
    async def approve(request):
        return decision

    service = FlakyService("here")
    result = await create_library(service, needs_approval=True, approve=approve).call("fetch", {})
    assert (result.failure, service.seen) == ("denied", [])
    assert result.content.endswith("the approval handler returned neither Approved nor Denied")


async def test_a_tools_own_timeout_is_reported_with_its_own_message():
    class QueryTimedOut(ToolFailed, TimeoutError):
        pass

    result = await create_library(
        FlakyService(QueryTimedOut("The query took longer than 5 seconds.")), read_only=True
    ).call("fetch", {})
    assert (result.failure, result.content) == ("timeout", "The query took longer than 5 seconds.")


@pytest.mark.parametrize("value", [2**80, float("nan"), "a\ud800", {"b": [1, None]}, "天"])
async def test_any_argument_passes_unchanged_through_the_rules(value):
    seen = []

    class Any:
        tool_id, timeout = "any", None
        definition = ToolDefinition("any", "Any.", {"type": "object", "properties": {}})
        spec = FunctionToolSpec(tool_id="any", module_path="m", needs_approval=True, idempotent=True, cache_seconds=9)

        async def run(self, arguments, context):
            seen.append(arguments["v"])

    async def yes(request):
        return Approved()

    library = ToolLibrary([Any()], approve=yes)
    results = [await library.call("any", {"v": value}) for _ in range(2)]
    assert [one.cached for one in results] == [False, True]
    assert repr(seen) == repr([value])


async def test_a_tool_that_cancels_itself_fails_alone():
    async def lost() -> None:
        """Lose the connection."""
        raise asyncio.CancelledError

    result = await ToolLibrary([lost]).call("lost", {})
    assert (result.failure, result.content) == ("failed", "lost failed: ToolFailed: it was cancelled from within")


async def test_deep_arguments_pass_through_every_policy():
    value: list = []
    for _ in range(800):
        value = [value]
    received = []

    def take(value: list) -> str:
        """Take a list."""
        received.append(value)
        return "taken"

    async def approve(request):
        return Approved()

    tool = FunctionTool(take, needs_approval=True, idempotent=True, read_only=True, cache_seconds=60)
    result = await ToolLibrary([tool], retries=FAST_RETRIES, approve=approve).call("take", {"value": value})
    assert (result.content, len(received)) == ("taken", 1)
