"""Lookup of time zones by IANA name, city, country, UTC offset or Chinese name."""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolUnavailable

_OFFSET_PATTERN = re.compile(r"^(?:utc|gmt)?\s*([+-])\s*(\d{1,2})(?::?(\d{2}))?$")
_UTC_NAMES = frozenset(
    {"", "utc", "gmt", "z", "zulu", "etc/utc", "utc0", "协调世界时", "格林威治", "格林尼治", "世界标准"}
)
_SUFFIX_PATTERN = re.compile(
    r"(?:\s+(?:standard |local |daylight )?time(?: ?zone)?|的?(?:当地|本地)?(?:时间|时区)|市)$"
)

_ALIASES_BY_ZONE = {
    "Asia/Shanghai": "beijing peking shenzhen guangzhou hangzhou chengdu nanjing wuhan xian tianjin china cn prc "
    "北京 上海 深圳 广州 杭州 成都 南京 武汉 西安 天津 重庆 苏州 中国 中国标准 china_standard",
    "Asia/Hong_Kong": "hongkong hk 香港",
    "Asia/Macau": "macao 澳门",
    "Asia/Taipei": "taiwan 台北 台湾",
    "Asia/Tokyo": "japan jp jst osaka kyoto 东京 日本 大阪 京都",
    "Asia/Seoul": "korea south_korea kr kst 首尔 韩国",
    "Asia/Singapore": "sg sgt 新加坡",
    "Asia/Kolkata": "india mumbai delhi new_delhi bangalore bengaluru chennai calcutta 印度 孟买 新德里 加尔各答",
    "Asia/Dubai": "uae abu_dhabi 迪拜 阿联酋",
    "Asia/Bangkok": "thailand 曼谷 泰国",
    "Asia/Jakarta": "indonesia 雅加达 印尼",
    "Asia/Manila": "philippines 马尼拉 菲律宾",
    "Asia/Ho_Chi_Minh": "vietnam hanoi saigon 河内 胡志明 越南",
    "Asia/Kuala_Lumpur": "malaysia 吉隆坡 马来西亚",
    "Asia/Jerusalem": "israel tel_aviv 以色列 耶路撒冷",
    "Asia/Riyadh": "saudi_arabia 利雅得 沙特",
    "Europe/London": "uk england britain great_britain united_kingdom edinburgh manchester bst gb 伦敦 英国",
    "Europe/Paris": "france lyon 巴黎 法国",
    "Europe/Berlin": "germany munich frankfurt hamburg cologne de cet cest 柏林 德国 慕尼黑 法兰克福",
    "Europe/Madrid": "spain barcelona 马德里 西班牙 巴塞罗那",
    "Europe/Rome": "italy milan 罗马 意大利 米兰",
    "Europe/Zurich": "switzerland geneva bern 苏黎世 瑞士 日内瓦",
    "Europe/Amsterdam": "netherlands holland 阿姆斯特丹 荷兰",
    "Europe/Moscow": "msk 莫斯科 俄罗斯",
    "Europe/Istanbul": "turkey ankara 伊斯坦布尔 土耳其",
    "Europe/Vienna": "austria 维也纳 奥地利",
    "Europe/Stockholm": "sweden 斯德哥尔摩 瑞典",
    "Africa/Cairo": "egypt 开罗 埃及",
    "Africa/Johannesburg": "south_africa cape_town 约翰内斯堡 南非",
    "America/New_York": "nyc boston washington washington_dc miami atlanta philadelphia us_eastern eastern us_east et est "
    "edt 纽约 波士顿 华盛顿 迈阿密 美国东部 美东",
    "America/Chicago": "dallas houston austin central us_central cdt 芝加哥 休斯顿 美国中部 美中",
    "America/Denver": "mountain us_mountain mst mdt 丹佛 美国山地",
    "America/Los_Angeles": "la san_francisco sf seattle san_diego silicon_valley las_vegas pacific us_pacific us_west pt "
    "pst pdt 洛杉矶 旧金山 西雅图 美国西部 美西 拉斯维加斯",
    "America/Toronto": "ottawa montreal 多伦多 渥太华",
    "America/Vancouver": "温哥华",
    "America/Sao_Paulo": "brazil rio rio_de_janeiro brasilia 圣保罗 巴西",
    "America/Mexico_City": "mexico 墨西哥城 墨西哥",
    "America/Argentina/Buenos_Aires": "argentina 布宜诺斯艾利斯 阿根廷",
    "Australia/Sydney": "canberra aest aedt 悉尼 堪培拉",
    "Australia/Melbourne": "墨尔本",
    "Australia/Perth": "珀斯",
    "Pacific/Auckland": "new_zealand wellington nzst 奥克兰 新西兰",
    "Pacific/Honolulu": "hawaii 夏威夷 檀香山",
}
_REGIONS = ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
_AMBIGUOUS_NAMES = {
    "cst": "Asia/Shanghai, America/Chicago",
    "ist": "Asia/Kolkata, Asia/Jerusalem, Europe/Dublin",
    "us": "America/New_York, America/Chicago, America/Los_Angeles",
    "usa": "America/New_York, America/Chicago, America/Los_Angeles",
    "america": "America/New_York, America/Chicago, America/Los_Angeles",
    "美国": "America/New_York, America/Chicago, America/Los_Angeles",
    "australia": "Australia/Sydney, Australia/Perth",
    "澳大利亚": "Australia/Sydney, Australia/Perth",
    "canada": "America/Toronto, America/Vancouver",
    "加拿大": "America/Toronto, America/Vancouver",
    "russia": "Europe/Moscow, Asia/Vladivostok",
}


def find_zone(name: str) -> tuple[str, tzinfo | None]:
    """Return the name and rules of a time zone. The rules of this machine's zone ("local") are None.

    Raises:
        InvalidArguments: The zone is unknown, or the name is ambiguous.
        ToolUnavailable: This machine has no time zone data.
    """
    normalized_name = _normalize_name(name)
    if normalized_name in _UTC_NAMES:
        return "UTC", UTC
    if normalized_name in ("local", "localtime", "system", "here", "本地", "当地"):
        return "local", None
    if match := _OFFSET_PATTERN.match(name.strip().lower().replace("\u2212", "-")):
        return _parse_offset(name, match)
    if normalized_name in _AMBIGUOUS_NAMES:
        raise _build_error(name, f"several zones are meant by that; use one of {_AMBIGUOUS_NAMES[normalized_name]}")
    zones_by_name = _load_zones_by_name()
    if not zones_by_name:
        raise ToolUnavailable(
            'This machine has no time zone data (install the "tzdata" package); UTC, local and offsets such as +08:00 work.'
        )
    city, place = normalized_name.rsplit("/", 1)[-1], _normalize_name(name.split(",", 1)[0])  # Asia/Beijing; London, UK
    for candidate in (normalized_name, city, place):
        if candidate in zones_by_name:
            return zones_by_name[candidate], ZoneInfo(zones_by_name[candidate])
    raise _build_error(name, _describe_unknown_zone(normalized_name, zones_by_name))


def _describe_unknown_zone(zone_name: str, zones_by_name: dict[str, str]) -> str:
    similar_zones = dict.fromkeys(
        zones_by_name[similar_name]
        for similar_name in get_close_matches(zone_name[:60], zones_by_name, n=4, cutoff=0.6)
    )
    example = ", ".join(similar_zones) or "Asia/Shanghai, Europe/London, America/New_York, UTC, +08:00"
    return f"there is no such time zone; {'did you mean' if similar_zones else 'use a name such as'} {example}"


def _normalize_name(name: str) -> str:
    text = re.sub(r"\s+", " ", name.strip().strip("\"'").lower())
    return re.sub(r"[ .,-]+", "_", _SUFFIX_PATTERN.sub("", text)).strip("_")


def _parse_offset(name: str, match: re.Match[str]) -> tuple[str, tzinfo]:
    sign, hours, minutes = match[1], int(match[2]), int(match[3] or 0)
    if hours > 14 or minutes > 59:
        raise _build_error(name, "an offset lies between -14:00 and +14:00")
    delta = timedelta(hours=hours, minutes=minutes)
    return f"UTC{sign}{hours:02}:{minutes:02}", timezone(-delta if sign == "-" else delta)


def _build_error(name: str, problem: str) -> InvalidArguments:
    return InvalidArguments((FieldProblem("timezone", problem, repr(name[:60])),))


@cache
def _load_zones_by_name() -> dict[str, str]:
    """Map every known name (lower case, words joined by _) to its IANA name.

    The map is empty when this machine has no time zone data.
    """
    zones = sorted(available_timezones(), key=lambda zone: (zone.count("/") == 0, zone))
    if not zones:
        return {}
    names: dict[str, str] = {}
    for zone in zones:
        region, _, city = zone.rpartition("/")
        if region.split("/")[0] in _REGIONS and city not in ("North", "South", "West"):
            names.setdefault(city.lower().replace("-", "_"), zone)
    zone_set = set(zones)
    for zone, aliases in _ALIASES_BY_ZONE.items():
        if zone in zone_set:
            names |= dict.fromkeys(aliases.split(), zone)
    return names | {zone.lower().replace("-", "_"): zone for zone in zones}
