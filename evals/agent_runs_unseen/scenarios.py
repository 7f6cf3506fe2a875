"""The unseen scenarios: everyday tasks, about a third of them in Chinese."""

import copy
import functools
import operator
import re

from opposable.evals.agent_runs.environment import Environment
from opposable.evals.agent_runs.scenario import Goal, PlannedCall, PlannedMove, Scenario

from . import business_environments as business
from . import private_life_environments as private_life
from . import public_service_environments as public_services

_REMOVED = object()
"""The value of a key that has to disappear."""

_ADMISSION = re.compile(
    r"没有|没能|没找到|未|无法|无此|不能|不存在|不可|不支持|不允许|不了|找不到|查不到|查无|失败|抱歉|已结案|已经结案|"
    r"\bnot\b|n['’]t\b|\bno\b|\bcannot\b|\bunable\b|\bfail|\bsorry\b|\b404\b|\b409\b|\bfull\b|\bfully booked\b",
    re.IGNORECASE,
)


def _expect_changes(*changes: tuple[tuple[str, ...], object]) -> Goal:
    """Require these values at these paths of the state, and no other change."""

    def is_reached(env: Environment, _: str) -> bool:
        expected_state = copy.deepcopy(env.initial_state)
        for (*parent_keys, key), value in changes:
            parent = functools.reduce(operator.getitem, parent_keys, expected_state)
            if value is _REMOVED:
                del parent[key]
            else:
                parent[key] = value
        return env.state == expected_state

    return is_reached


def _expect_change(value: object, *path: str) -> Goal:
    return _expect_changes((path, value))


def _expect_added(collection: str, item: object) -> Goal:
    """Require one more item in a collection of the state, under any id, and no other change."""

    def is_reached(env: Environment, _: str) -> bool:
        initial_ids = set(env.initial_state[collection])
        added_items = [value for item_id, value in env.state[collection].items() if item_id not in initial_ids]
        remaining_items = {key: value for key, value in env.state[collection].items() if key in initial_ids}
        return added_items == [item] and {**env.state, collection: remaining_items} == env.initial_state

    return is_reached


def _expect_answer(pattern: str) -> Goal:
    compiled_pattern = re.compile(pattern, re.IGNORECASE)
    return lambda env, text: env.is_unchanged and bool(env.recorded_calls) and bool(compiled_pattern.search(text))


def _expect_admission() -> Goal:
    """Require an answer that says that it was not possible, after at least one call, and no change."""
    return lambda env, text: env.is_unchanged and bool(env.recorded_calls) and bool(_ADMISSION.search(text))


def _make_call(name: str, /, **arguments: object) -> PlannedCall:
    return name, arguments


UNSEEN_SCENARIOS: tuple[Scenario, ...] = (
    # One call that works
    Scenario("another delivery day", "one call", "I am not at home on Thursday. Please have parcel GX5502917 delivered on 2026-11-14 instead.",
             private_life.make_parcels, _expect_change("2026-11-14", "parcels", "GX5502917", "delivery_day"),
             (PlannedMove(_make_call("change_delivery_day", tracking_number="GX5502917", day="2026-11-14")),)),
    Scenario("light in the hall", "one call", "Switch on the hall lamp.",
             private_life.make_smart_home, _expect_change("on", "devices", "hall lamp"),
             (PlannedMove(_make_call("switch_device", device="hall lamp", power="on")),)),
    Scenario("a warm bathroom", "one call", "Set the heating in the bathroom to 22 degrees Celsius.",
             private_life.make_smart_home, _expect_change(22.0, "heating", "bathroom"),
             (PlannedMove(_make_call("set_heating", zone="bathroom", celsius=22)),)),
    Scenario("address of the shop", "one call", "Add an A record for shop.fernhill.org with the value 203.0.113.40",
             business.make_dns_zone, _expect_added("records", {"name": "shop.fernhill.org", "type": "A", "value": "203.0.113.40"}),
             (PlannedMove(_make_call("add_record", name="shop.fernhill.org", record_type="A", value="203.0.113.40")),)),
    Scenario("branch for a release", "one call", "Create a branch called release-2.0 from main.",
             business.make_repository, _expect_change("a41f9c2", "branches", "release-2.0"),
             (PlannedMove(_make_call("create_branch", name="release-2.0", start_point="main")),)),
    Scenario("remind Brightwater", "one call", "Send a payment reminder for invoice 2026-0311.",
             business.make_invoices, _expect_change(1, "invoices", "2026-0311", "reminders"),
             (PlannedMove(_make_call("send_reminder", invoice_no="2026-0311")),)),
    Scenario("odometer of the van", "one call", "The odometer of our van ZH-20417 now shows 84960 km, please record that.",
             business.make_fleet, _expect_change(84960, "vehicles", "ZH-20417", "mileage_km"),
             (PlannedMove(_make_call("record_mileage", plate="ZH-20417", km=84960)),)),
    Scenario("a playlist for work", "one call", "Create a playlist called Focus.",
             private_life.make_music, _expect_change([], "playlists", "Focus"),
             (PlannedMove(_make_call("create_playlist", name="Focus")),)),
    Scenario("another name for a playlist", "one call", "Rename my playlist Dinner to Supper.",
             private_life.make_music, _expect_changes((("playlists", "Dinner"), _REMOVED), (("playlists", "Supper"), ["t-330"])),
             (PlannedMove(_make_call("rename_playlist", playlist="Dinner", new_name="Supper")),)),
    Scenario("approve by id", "one call", "Approve entry TM-140 in the glossary.",
             business.make_glossary, _expect_change(True, "entries", "TM-140", "approved"),
             (PlannedMove(_make_call("approve_entry", entry_id="TM-140")),)),
    Scenario("four weeks off", "one call", "Pause the membership M-2207 for 4 weeks.",
             private_life.make_gym, _expect_change(4, "members", "M-2207", "paused_weeks"),
             (PlannedMove(_make_call("pause_membership", member_no="M-2207", weeks=4)),)),
    Scenario("锁定银行卡", "one call", "我的工资卡好像丢了，先帮我临时锁定。",
             public_services.make_bank_accounts, _expect_change("已锁定", "cards", "工资卡"),
             (PlannedMove(_make_call("lock_card", card="工资卡")),)),
    Scenario("酱油快没了", "one call", "把酱油加到购物清单里。",
             private_life.make_kitchen, _expect_change({"牛奶", "酱油"}, "shopping_list"),
             (PlannedMove(_make_call("add_to_shopping_list", items="酱油")),)),
    Scenario("换联系电话", "one call", "把理赔案 LP-30266 的联系电话改成 0571-88326014。",
             public_services.make_claims, _expect_change("0571-88326014", "claims", "LP-30266", "phone"),
             (PlannedMove(_make_call("update_phone", claim_no="LP-30266", phone="0571-88326014")),)),
    Scenario("取消门票", "one call", "我去不了博物馆了，请取消门票订单 BK-7001。",
             public_services.make_museum, _expect_change(_REMOVED, "bookings", "BK-7001"),
             (PlannedMove(_make_call("cancel_booking", booking_no="BK-7001")),)),
    Scenario("换教室", "one call", "把编号为 L203 的课换到 B105 教室上。",
             public_services.make_timetable, _expect_change("B105", "lessons", "L203", "classroom"),
             (PlannedMove(_make_call("change_classroom", lesson_id="L203", classroom="B105")),)),
    # A first call that fails; the error or another tool has the right value
    Scenario("movie night", "error recovery", "Start the movie night scene.",
             private_life.make_smart_home, _expect_change("movie_night_02", "scene"),
             (PlannedMove(_make_call("start_scene", scene="movie_night_02"), (_make_call("start_scene", scene="movie night"),), "movie_night_02"),)),
    Scenario("alias of the documentation", "error recovery", "The host docs.fernhill.org should be an alias of pages.example.net, so please add a CNAME record.",
             business.make_dns_zone, _expect_added("records", {"name": "docs.fernhill.org", "type": "CNAME", "value": "pages.example.net."}),
             (PlannedMove(_make_call("add_record", name="docs.fernhill.org", record_type="CNAME", value="pages.example.net."),
                   (_make_call("add_record", name="docs.fernhill.org", record_type="CNAME", value="pages.example.net"),), r"pages\.example\.net\.'"),)),
    Scenario("an old verification", "error recovery", "Delete the TXT record of old-check.fernhill.org, we no longer need it.",
             business.make_dns_zone, _expect_change(_REMOVED, "records", "rec-40817"),
             (PlannedMove(_make_call("list_records"), (_make_call("delete_record", record_id="old-check.fernhill.org"),), "list_records"),
              PlannedMove(_make_call("delete_record", record_id="rec-40817")))),
    Scenario("the login branch", "error recovery", "The login branch is finished. Delete it.",
             business.make_repository, _expect_change(_REMOVED, "branches", "feature/login"),
             (PlannedMove(_make_call("delete_branch", name="feature/login"), (_make_call("delete_branch", name="login"),), "feature/login"),)),
    Scenario("Brightwater has paid", "error recovery", "Brightwater paid invoice 2026-0311 on 23 November 2026. Mark it as paid.",
             business.make_invoices, _expect_change("23/11/2026", "invoices", "2026-0311", "paid_on"),
             (PlannedMove(_make_call("mark_paid", invoice_no="2026-0311", paid_on="23/11/2026"), (_make_call("mark_paid", invoice_no="2026-0311", paid_on="2026-11-23"),), "DD/MM/YYYY"),)),
    Scenario("oil change", "error recovery", "Book the vehicle ZH-33908 into the workshop for an oil change on 2026-12-02.",
             business.make_fleet, _expect_change([["ZH-33908", "SV10", "2026-12-02"]], "workshop_visits"),
             (PlannedMove(_make_call("book_workshop", plate="ZH-33908", service_code="SV10", day="2026-12-02"),
                   (_make_call("book_workshop", plate="ZH-33908", service_code="oil change", day="2026-12-02"),), "SV10"),)),
    Scenario("five seconds of crossfade", "error recovery", "Set the crossfade of the music player to 5 seconds.",
             private_life.make_music, _expect_change(5000, "crossfade_ms"),
             (PlannedMove(_make_call("set_crossfade", duration=5000), (_make_call("set_crossfade", duration=5),), "milliseconds"),)),
    Scenario("a dashboard in French", "error recovery", "Add to the glossary that the term dashboard is called tableau de bord in French.",
             business.make_glossary, _expect_added("entries", {"term": "dashboard", "language": "fr-FR", "translation": "tableau de bord", "approved": False}),
             (PlannedMove(_make_call("add_translation", term="dashboard", language="fr-FR", translation="tableau de bord"),
                   (_make_call("add_translation", term="dashboard", language="French", translation="tableau de bord"),), "fr-FR"),)),
    Scenario("a better plan", "error recovery", "Move member M-2207 to the Plus plan.",
             private_life.make_gym, _expect_change("PLAN_PLUS", "members", "M-2207", "plan"),
             (PlannedMove(_make_call("change_plan", member_no="M-2207", plan="PLAN_PLUS"), (_make_call("change_plan", member_no="M-2207", plan="Plus"),), "PLAN_PLUS"),)),
    Scenario("转六千元", "error recovery", "从我的储蓄账户转 6000 元到日常账户。",
             public_services.make_bank_accounts, _expect_changes((("balances", "6222-7735"), 46000.36), (("balances", "6222-0418"), 14350.2)),
             (PlannedMove(_make_call("list_accounts"), (_make_call("transfer", from_account="储蓄账户", to_account="日常账户", amount=6000),), "list_accounts"),
              PlannedMove(_make_call("transfer", from_account="6222-7735", to_account="6222-0418", amount=6000)))),
    Scenario("周六的晚餐", "error recovery", "周六晚餐吃红烧肉，帮我安排上。",
             private_life.make_kitchen, _expect_change("红烧肉", "dinners", "sat"),
             (PlannedMove(_make_call("plan_dinner", day="sat", recipe="红烧肉"), (_make_call("plan_dinner", day="周六", recipe="红烧肉"),), r"\bsat\b"),)),
    Scenario("补交维修发票", "error recovery", "理赔案 LP-30251 补交了维修发票，请登记一下。",
             public_services.make_claims, _expect_change(["REPAIR_INVOICE"], "claims", "LP-30251", "documents"),
             (PlannedMove(_make_call("attach_document", claim_no="LP-30251", document_type="REPAIR_INVOICE"),
                   (_make_call("attach_document", claim_no="LP-30251", document_type="维修发票"),), "REPAIR_INVOICE"),)),
    Scenario("下午场讲解", "error recovery", "帮我预约 2026-12-05 下午场的博物馆免费讲解。",
             public_services.make_museum, _expect_change([["2026-12-05", "B"]], "guides"),
             (PlannedMove(_make_call("book_guide", day="2026-12-05", session="B"), (_make_call("book_guide", day="2026-12-05", session="下午场"),), "B（下午场"),)),
    Scenario("韩老师代课", "error recovery", "编号为 L204 的课请韩梅老师代课，帮忙安排一下。",
             public_services.make_timetable, _expect_change("T058", "lessons", "L204", "substitute"),
             (PlannedMove(_make_call("find_teacher", name="韩梅"), (_make_call("set_substitute", lesson_id="L204", teacher="韩梅"),), "find_teacher"),
              PlannedMove(_make_call("set_substitute", lesson_id="L204", teacher="T058")))),
    # A call that needs the result of an earlier one
    Scenario("parcel at the petrol station", "dependent calls", "Send parcel GX5502917 to the pickup point at the petrol station. My postcode is M20 4RT.",
             private_life.make_parcels, _expect_change("PP-311", "parcels", "GX5502917", "pickup_point"),
             (PlannedMove(_make_call("find_pickup_points", postcode="M20 4RT"), (_make_call("redirect_parcel", tracking_number="GX5502917", point_id="petrol station"),), "find_pickup_points"),
              PlannedMove(_make_call("redirect_parcel", tracking_number="GX5502917", point_id="PP-311")))),
    Scenario("tag the newest commit", "dependent calls", "Give the newest commit of the branch feature/login the tag v1.4.0.",
             business.make_repository, _expect_change("77b03de", "tags", "v1.4.0"),
             (PlannedMove(_make_call("show_log", branch="feature/login"), (_make_call("create_tag", name="v1.4.0", commit="feature/login"),), "show_log"),
              PlannedMove(_make_call("create_tag", name="v1.4.0", commit="77b03de")))),
    Scenario("remind Okafor", "dependent calls", "Okafor Brothers have one unpaid invoice. Find it and send a reminder for it.",
             business.make_invoices, _expect_change(1, "invoices", "2026-0318", "reminders"),
             (PlannedMove(_make_call("find_invoices", customer="Okafor Brothers")), PlannedMove(_make_call("send_reminder", invoice_no="2026-0318")))),
    Scenario("a song for running", "dependent calls", "Add the song Harvest Lights to my playlist Running.",
             private_life.make_music, _expect_change(["t-101", "t-205", "t-417"], "playlists", "Running"),
             (PlannedMove(_make_call("search_tracks", query="Harvest Lights"), (_make_call("add_track", playlist="Running", track_id="Harvest Lights"),), "search_tracks"),
              PlannedMove(_make_call("add_track", playlist="Running", track_id="t-417")))),
    Scenario("approve by term", "dependent calls", "Approve the glossary entry for the term invoice.",
             business.make_glossary, _expect_change(True, "entries", "TM-152", "approved"),
             (PlannedMove(_make_call("look_up_term", term="invoice"), (_make_call("approve_entry", entry_id="invoice"),), "look_up_term"),
              PlannedMove(_make_call("approve_entry", entry_id="TM-152")))),
    Scenario("yoga on Friday", "dependent calls", "Book the yoga class on Friday for member M-2231.",
             private_life.make_gym, _expect_change([["YG-31", "M-2231"]], "bookings"),
             (PlannedMove(_make_call("list_classes", weekday="Friday"), (_make_call("book_class", class_id="yoga", member_no="M-2231"),), "list_classes"),
              PlannedMove(_make_call("book_class", class_id="YG-31", member_no="M-2231")))),
    Scenario("旅行结束", "dependent calls", "旅行结束了，把旅行账户里的余额全部转到储蓄账户。",
             public_services.make_bank_accounts, _expect_changes((("balances", "6222-9061"), 0.0), (("balances", "6222-7735"), 53204.86)),
             (PlannedMove(_make_call("list_accounts")), PlannedMove(_make_call("transfer", from_account="6222-9061", to_account="6222-7735", amount=1204.5)))),
    Scenario("番茄炒蛋的食材", "dependent calls", "查一下番茄炒蛋的菜谱，把需要的食材都加到购物清单里。",
             private_life.make_kitchen, _expect_change({"牛奶", "番茄", "鸡蛋", "小葱"}, "shopping_list"),
             (PlannedMove(_make_call("get_recipe", name="番茄炒蛋")), PlannedMove(_make_call("add_to_shopping_list", items="番茄, 鸡蛋, 小葱")))),
    Scenario("丝路展的票", "dependent calls", "订 3 张丝路珍宝展的门票，参观日期是 2026-12-06。",
             public_services.make_museum, _expect_added("bookings", {"exhibition_id": "EX12", "day": "2026-12-06", "count": 3}),
             (PlannedMove(_make_call("list_exhibitions"), (_make_call("book_tickets", exhibition_id="丝路珍宝展", day="2026-12-06", count=3),), "list_exhibitions"),
              PlannedMove(_make_call("book_tickets", exhibition_id="EX12", day="2026-12-06", count=3)))),
    Scenario("化学课换教室", "dependent calls", "八年级1班周四的化学课要做实验，把它换到 C301 教室。",
             public_services.make_timetable, _expect_change("C301", "lessons", "L214", "classroom"),
             (PlannedMove(_make_call("get_timetable", class_name="八年级1班", weekday="周四"), (_make_call("change_classroom", lesson_id="化学", classroom="C301"),), "get_timetable"),
              PlannedMove(_make_call("change_classroom", lesson_id="L214", classroom="C301")))),
    # Tools that fail temporarily
    Scenario("temperature in the nursery", "flaky tool", "How warm is it in the nursery right now?",
             lambda: private_life.make_smart_home(unavailable_count=1), _expect_answer(r"18[.,]6"),
             (PlannedMove(_make_call("read_temperature", zone="nursery")),), "discouraged", answer="It is 18.6 °C in the nursery."),
    Scenario("a driver for the Caddy", "flaky tool", "Assign Marta Lindqvist as the driver of the vehicle ZH-33908.",
             lambda: business.make_fleet(unavailable_count=2), _expect_change("Marta Lindqvist", "vehicles", "ZH-33908", "driver"),
             (PlannedMove(_make_call("assign_driver", plate="ZH-33908", driver="Marta Lindqvist")),), "discouraged"),
    Scenario("红烧肉炖多久", "flaky tool", "按菜谱，红烧肉要用小火炖多少分钟？",
             lambda: private_life.make_kitchen(unavailable_count=2), _expect_answer(r"75|七十五|1\s*小时\s*15|一小时十五|一小时一刻"),
             (PlannedMove(_make_call("get_recipe", name="红烧肉")),), "discouraged", answer="要用小火炖 75 分钟。"),
    Scenario("余票", "flaky tool", "编号 EX15 的展览在 2026-12-05 还剩多少张票？",
             lambda: public_services.make_museum(unavailable_count=1), _expect_answer(r"37|三十七"),
             (PlannedMove(_make_call("count_tickets", exhibition_id="EX15", day="2026-12-05")),), "discouraged", answer="还剩 37 张票。"),
    # What does not exist or is not possible
    Scenario("an unknown parcel", "missing data", "Have parcel GX7700001 delivered on 2026-11-14.",
             private_life.make_parcels, _expect_admission(),
             (PlannedMove(_make_call("change_delivery_day", tracking_number="GX7700001", day="2026-11-14"), done_pattern="404"),),
             answer="I could not change the delivery: there is no parcel with the tracking number GX7700001."),
    Scenario("an unknown host", "missing data", "Delete the A record of ftp.fernhill.org.",
             business.make_dns_zone, _expect_admission(),
             (PlannedMove(_make_call("list_records"), (_make_call("delete_record", record_id="ftp.fernhill.org"),), "list_records"),),
             answer="fernhill.org has no A record for ftp.fernhill.org, so I deleted nothing."),
    Scenario("an unknown invoice", "missing data", "Please send a payment reminder for invoice 2026-0307.",
             business.make_invoices, _expect_admission(),
             (PlannedMove(_make_call("send_reminder", invoice_no="2026-0307"), done_pattern="not_found"),),
             answer="Invoice 2026-0307 does not exist, so no reminder was sent."),
    Scenario("an unknown term", "missing data", "Delete the glossary entry for the term landing page.",
             business.make_glossary, _expect_admission(),
             (PlannedMove(_make_call("look_up_term", term="landing page"), (_make_call("delete_entry", entry_id="landing page"),), "look_up_term"),),
             answer="The glossary has no entry for landing page, so I deleted nothing."),
    Scenario("a full class", "missing data", "Book the pilates class on Friday for member M-2231.",
             private_life.make_gym, _expect_admission(),
             (PlannedMove(_make_call("list_classes", weekday="Friday"), (_make_call("book_class", class_id="pilates", member_no="M-2231"),), "list_classes"),
              PlannedMove(_make_call("book_class", class_id="PL-08", member_no="M-2231"), done_pattern="fully booked")),
             answer="The pilates class on Friday is fully booked, so I could not book it."),
    Scenario("撤销已结的案子", "missing data", "请撤销理赔案 LP-30240。",
             public_services.make_claims, _expect_admission(),
             (PlannedMove(_make_call("withdraw_claim", claim_no="LP-30240"), done_pattern="已结案"),),
             answer="理赔案 LP-30240 已结案，无法撤销。"),
    # Questions that one reading answers
    Scenario("weight of a parcel", "reading", "How heavy is parcel GX5518340?",
             private_life.make_parcels, _expect_answer(r"7[.,]35"),
             (PlannedMove(_make_call("track_parcel", tracking_number="GX5518340")),), answer="The parcel weighs 7.35 kg."),
    Scenario("author of a commit", "reading", "Who wrote the newest commit on the branch fix-typo?",
             business.make_repository, _expect_answer(r"Lin Zhao"),
             (PlannedMove(_make_call("show_log", branch="fix-typo")),), answer="Lin Zhao wrote it."),
    Scenario("driver of the Octavia", "reading", "Who is the driver of the vehicle ZH-51126?",
             business.make_fleet, _expect_answer(r"Dlamini"),
             (PlannedMove(_make_call("get_vehicle", plate="ZH-51126")),), answer="Dlamini drives it."),
    Scenario("储蓄余额", "reading", "我的储蓄账户里现在有多少钱？",
             public_services.make_bank_accounts, _expect_answer(r"52\s?[,，]?000[.．]36|5[.．]200036\s*万|五万二千元三角六分"),
             (PlannedMove(_make_call("list_accounts")),), answer="储蓄账户余额为 52,000.36 元。"),
    Scenario("理赔金额", "reading", "理赔案 LP-30251 的理赔金额是多少？",
             public_services.make_claims, _expect_answer(r"4\s?[,，]?263[.．]5"),
             (PlannedMove(_make_call("get_claim", claim_no="LP-30251")),), answer="理赔金额是 4263.5 元。"),
    Scenario("历史老师", "reading", "七年级2班周三的历史课是哪位老师上？",
             public_services.make_timetable, _expect_answer(r"沈立|沈老师"),
             (PlannedMove(_make_call("get_timetable", class_name="七年级2班", weekday="周三")),), answer="沈立老师。"),
)  # fmt: skip
