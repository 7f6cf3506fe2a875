"""Tool that reports the current time in a time zone."""

from datetime import UTC, datetime

from opposable.builtin_tools.time_zones import find_zone


def time(timezone: str = "UTC") -> dict[str, str | int]:
    """Tell the current date and time in a time zone.

    Args:
        timezone: a time zone such as UTC, local, Asia/Shanghai, +08:00, or a city such as London.

    Raises:
        InvalidArguments: there is no such time zone.
        ToolUnavailable: this machine has no time zone data.
    """
    name, zone = find_zone(timezone)
    now = datetime.now(UTC).astimezone(zone)
    offset = now.strftime("%z")
    return {
        "timezone": f"local ({now.tzname()})" if zone is None else name,
        "time": now.isoformat(timespec="seconds"),
        "date": now.date().isoformat(),
        "weekday": now.strftime("%A"),
        "unix": int(now.timestamp()),
        "utc_offset": f"{offset[:3]}:{offset[3:5]}",
    }
