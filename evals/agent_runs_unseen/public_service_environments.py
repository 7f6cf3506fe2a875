"""Environments of Chinese services: bank accounts, insurance claims, a museum and a school timetable."""

# ruff: noqa: D415 - Chinese sentences end with a full-width stop

import itertools
import re
from datetime import date
from typing import Any

from opposable.evals.agent_runs.environment import Environment

from .temporary_failures import Outage


def _parse_day(text: str) -> str:
    numbers = re.fullmatch(r"\s*(\d{4})\D?(\d{1,2})\D?(\d{1,2})日?\s*", str(text))
    if numbers is None:
        raise ValueError(f"日期格式错误：{text}，应为 yyyy-MM-dd")
    year, month, day = map(int, numbers.groups())
    return date(year, month, day).isoformat()


def make_bank_accounts() -> Environment:
    """Create a customer's own bank accounts and cards."""
    environment = Environment(
        {
            "balances": {"6222-0418": 8350.20, "6222-7735": 52000.36, "6222-9061": 1204.50},
            "cards": {"工资卡": "正常", "信用卡": "正常"},
        }
    )
    names = {"6222-0418": "日常账户", "6222-7735": "储蓄账户", "6222-9061": "旅行账户"}

    def require_account(account_no: str) -> str:
        if account_no not in names:
            raise ValueError(f"账号无效：{account_no}。账号格式为 6222-XXXX，可用 list_accounts 查询")
        return account_no

    async def list_accounts() -> list[dict[str, Any]]:
        """列出本人的账户、账号和余额（元）。"""
        return [
            {"account_no": number, "name": names[number], "balance": balance}
            for number, balance in environment.state["balances"].items()
        ]

    async def transfer(from_account: str, to_account: str, amount: float) -> str:
        """在本人账户之间转账。

        Args:
            from_account: 转出账号
            to_account: 转入账号
            amount: 金额（元）
        """
        balances, value = environment.state["balances"], round(float(amount), 2)
        source, target = require_account(from_account), require_account(to_account)
        if not 0 < value <= balances[source]:
            raise ValueError(f"余额不足或金额无效：{amount}，可用余额 {balances[source]}")
        balances[source] = round(balances[source] - value, 2)
        balances[target] = round(balances[target] + value, 2)
        return f"转账成功，{names[source]}余额 {balances[source]}，{names[target]}余额 {balances[target]}"

    async def lock_card(card: str) -> str:
        """临时锁定银行卡。

        Args:
            card: 卡的名称，如 信用卡
        """
        if card not in environment.state["cards"]:
            raise LookupError(f"没有银行卡：{card}，现有：{'、'.join(environment.state['cards'])}")
        environment.state["cards"][card] = "已锁定"
        return f"{card}已锁定"

    environment.add_tool(list_accounts, read_only=True)
    environment.add_tool(transfer)
    environment.add_tool(lock_card)
    return environment


def make_claims() -> Environment:
    """Create insurance claims, one of them closed."""
    environment = Environment(
        {
            "claims": {
                "LP-30240": {"type": "意外险", "amount": 1900.0, "status": "已结案", "phone": "", "documents": []},
                "LP-30251": {"type": "车险", "amount": 4263.5, "status": "待补材料", "phone": "", "documents": []},
                "LP-30266": {"type": "医疗险", "amount": 860.0, "status": "审核中", "phone": "", "documents": []},
            }
        }
    )

    def require_claim(claim_no: str) -> dict[str, Any]:
        claim: dict[str, Any] | None = environment.state["claims"].get(str(claim_no).strip().upper())
        if claim is None:
            raise LookupError(f"理赔案号不存在：{claim_no}")
        return claim

    async def get_claim(claim_no: str) -> dict[str, Any]:
        """查询理赔案的险种、金额和状态。

        Args:
            claim_no: 理赔案号
        """
        return {"claim_no": claim_no, **require_claim(claim_no)}

    async def attach_document(claim_no: str, document_type: str) -> str:
        """登记理赔案补交的材料。

        Args:
            claim_no: 理赔案号
            document_type: 材料类型
        """
        claim = require_claim(claim_no)
        if document_type not in ("PHOTO", "REPAIR_INVOICE", "ID_CARD"):
            raise ValueError(
                f"材料类型代码无效：{document_type}。可用代码：PHOTO（事故照片）、REPAIR_INVOICE（维修发票）、ID_CARD（身份证）"
            )
        claim["documents"].append(document_type)
        return f"{claim_no} 已登记材料 {document_type}"

    async def update_phone(claim_no: str, phone: str) -> str:
        """修改理赔案的联系电话。

        Args:
            claim_no: 理赔案号
            phone: 新的联系电话
        """
        require_claim(claim_no)["phone"] = str(phone).strip()
        return f"{claim_no} 联系电话：{phone}"

    async def withdraw_claim(claim_no: str) -> str:
        """撤销理赔申请。

        Args:
            claim_no: 理赔案号
        """
        claim = require_claim(claim_no)
        if claim["status"] == "已结案":
            raise ValueError(f"403：理赔案 {claim_no} 已结案，不能撤销")
        claim["status"] = "已撤销"
        return f"{claim_no} 已撤销"

    environment.add_tool(get_claim, read_only=True)
    environment.add_tool(attach_document)
    environment.add_tool(update_phone)
    environment.add_tool(withdraw_claim)
    return environment


def make_museum(unavailable_count: int = 0) -> Environment:
    """Create a museum's exhibitions and bookings; tickets cannot be counted for the first `unavailable_count` calls."""
    environment = Environment(
        {"bookings": {"BK-7001": {"exhibition_id": "EX15", "day": "2026-11-28", "count": 2}}, "guides": []}
    )
    exhibitions = {"EX12": "丝路珍宝展", "EX15": "明清家具展"}
    booking_numbers = itertools.count(7002)
    outage = Outage(unavailable_count, "504：票务系统超时，请稍后再试")

    def require_exhibition(exhibition_id: str) -> str:
        if exhibition_id not in exhibitions:
            raise LookupError(f"展览编号不存在：{exhibition_id}，请用 list_exhibitions 查询编号")
        return exhibition_id

    async def list_exhibitions() -> list[dict[str, str]]:
        """列出正在举办的展览。"""
        return [{"exhibition_id": number, "title": title} for number, title in exhibitions.items()]

    async def count_tickets(exhibition_id: str, day: str) -> dict[str, Any]:
        """查询展览某天的余票数量。

        Args:
            exhibition_id: 展览编号
            day: 参观日期，yyyy-MM-dd
        """
        outage.fail_while_active()
        remaining_tickets = 37 if require_exhibition(exhibition_id) == "EX15" else 112
        return {"exhibition_id": exhibition_id, "day": _parse_day(day), "remaining": remaining_tickets}

    async def book_tickets(exhibition_id: str, day: str, count: int) -> dict[str, str]:
        """预订展览门票。

        Args:
            exhibition_id: 展览编号
            day: 参观日期，yyyy-MM-dd
            count: 张数
        """
        booking = {"exhibition_id": require_exhibition(exhibition_id), "day": _parse_day(day), "count": int(count)}
        booking_no = f"BK-{next(booking_numbers)}"
        environment.state["bookings"][booking_no] = booking
        return {"booking_no": booking_no, "state": "预订成功"}

    async def cancel_booking(booking_no: str) -> str:
        """取消门票订单。

        Args:
            booking_no: 订单号
        """
        if environment.state["bookings"].pop(booking_no, None) is None:
            raise LookupError(f"订单不存在：{booking_no}")
        return f"订单 {booking_no} 已取消"

    async def book_guide(day: str, session: str) -> str:
        """预约免费讲解。

        Args:
            day: 参观日期，yyyy-MM-dd
            session: 场次
        """
        if str(session).upper() not in ("A", "B"):
            raise ValueError(f"session 无效：{session}，只能填 A（上午场 10:00）或 B（下午场 14:30）")
        environment.state["guides"].append([_parse_day(day), str(session).upper()])
        return f"讲解预约成功：{day}，{session} 场"

    environment.add_tool(list_exhibitions, read_only=True)
    environment.add_tool(count_tickets, read_only=True)
    environment.add_tool(book_tickets)
    environment.add_tool(cancel_booking)
    environment.add_tool(book_guide)
    return environment


def make_timetable() -> Environment:
    """Create the lessons of two school classes, and their teachers."""
    lessons = [
        ("L203", "七年级2班", "周三", 2, "数学", "吴倩", "A204"),
        ("L204", "七年级2班", "周三", 3, "历史", "沈立", "A204"),
        ("L213", "八年级1班", "周四", 1, "英语", "唐颖", "B301"),
        ("L214", "八年级1班", "周四", 4, "化学", "罗建", "B302"),
    ]
    fields = ("class_name", "weekday", "period", "subject", "teacher", "classroom")
    environment = Environment(
        {
            "lessons": {
                lesson_id: {**dict(zip(fields, values, strict=True)), "substitute": None}
                for lesson_id, *values in lessons
            }
        }
    )
    teacher_numbers = {"韩梅": "T058", "唐颖": "T041", "沈立": "T033"}

    def require_lesson(lesson_id: str) -> dict[str, Any]:
        lesson: dict[str, Any] | None = environment.state["lessons"].get(str(lesson_id).strip().upper())
        if lesson is None:
            raise LookupError(f"课程不存在：{lesson_id}，课程编号见 get_timetable")
        return lesson

    async def get_timetable(class_name: str, weekday: str) -> list[dict[str, Any]]:
        """查询班级某天的课程表。

        Args:
            class_name: 班级，如 九年级3班
            weekday: 星期几，如 周一
        """
        if not re.search(r"[一二三四五六日天]$", weekday):
            raise ValueError(f"weekday 无效：{weekday}，应为 周一 至 周日")
        name = re.sub(r"[\s()（）]", "", class_name)
        return [
            {"lesson_id": lesson_id, **lesson}
            for lesson_id, lesson in environment.state["lessons"].items()
            if (lesson["class_name"], lesson["weekday"][-1]) == (name, weekday[-1])
        ]

    async def find_teacher(name: str) -> list[dict[str, str]]:
        """按姓名查询教师工号。

        Args:
            name: 教师姓名
        """
        return [
            {"teacher_no": number, "name": teacher} for teacher, number in teacher_numbers.items() if teacher in name
        ]

    async def change_classroom(lesson_id: str, classroom: str) -> str:
        """更换一节课的教室。

        Args:
            lesson_id: 课程编号
            classroom: 新教室
        """
        require_lesson(lesson_id)["classroom"] = classroom.strip().upper()
        return f"{lesson_id} 改在 {classroom} 上课"

    async def set_substitute(lesson_id: str, teacher: str) -> str:
        """为一节课安排代课教师。

        Args:
            lesson_id: 课程编号
            teacher: 代课教师
        """
        lesson = require_lesson(lesson_id)
        if teacher not in teacher_numbers.values():
            raise ValueError(f"teacher 应为教师工号，收到：{teacher}（工号可用 find_teacher 查询）")
        lesson["substitute"] = teacher
        return f"{lesson_id} 由 {teacher} 代课"

    environment.add_tool(get_timetable, read_only=True)
    environment.add_tool(find_teacher, read_only=True)
    environment.add_tool(change_classroom)
    environment.add_tool(set_substitute)
    return environment
