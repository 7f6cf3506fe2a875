"""Environments of private life: parcels, a smart home, a kitchen, music and a gym."""

# ruff: noqa: D415 - Chinese sentences end with a full-width stop

import re
from datetime import date
from typing import Any

from opposable.evals.agent_runs.environment import Environment

from .temporary_failures import Outage

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _normalize_name(name: str) -> str:
    return str(name).strip().casefold().removeprefix("the ")


def make_parcels() -> Environment:
    """Create two parcels on their way, and the pickup points of a district."""
    environment = Environment(
        {
            "parcels": {
                "GX5502917": {"status": "in transit", "delivery_day": "2026-11-12", "pickup_point": None},
                "GX5518340": {"status": "at the depot", "delivery_day": "2026-11-13", "pickup_point": None},
            }
        }
    )
    weights = {"GX5502917": 1.2, "GX5518340": 7.35}
    pickup_points = [
        {"point_id": "PP-208", "name": "Corner shop, Mill Lane", "closes": "20:00"},
        {"point_id": "PP-311", "name": "Petrol station, Park Road", "closes": "22:00"},
    ]

    def get_parcel(tracking_number: str) -> dict[str, Any]:
        parcel: dict[str, Any] | None = environment.state["parcels"].get(tracking_number.strip().upper())
        if parcel is None:
            raise LookupError(f"404 Not Found: no parcel with the tracking number {tracking_number}")
        return parcel

    async def track_parcel(tracking_number: str) -> dict[str, Any]:
        """Show the status, the weight and the planned delivery of a parcel.

        Args:
            tracking_number: the tracking number
        """
        parcel = get_parcel(tracking_number)
        return {"tracking_number": tracking_number, "weight_kg": weights[tracking_number.strip().upper()], **parcel}

    async def change_delivery_day(tracking_number: str, day: str) -> str:
        """Deliver a parcel on another day.

        Args:
            tracking_number: the tracking number
            day: the new day, YYYY-MM-DD
        """
        parcel = get_parcel(tracking_number)
        parcel["delivery_day"] = date.fromisoformat(day).isoformat()
        return f"{tracking_number} will be delivered on {day}"

    async def find_pickup_points(postcode: str) -> list[dict[str, str]]:
        """List the pickup points near a postcode.

        Args:
            postcode: the postcode
        """
        return pickup_points if postcode.replace(" ", "").upper() == "M204RT" else []

    async def redirect_parcel(tracking_number: str, point_id: str) -> str:
        """Send a parcel to a pickup point instead of the home address.

        Args:
            tracking_number: the tracking number
            point_id: id of the pickup point
        """
        parcel = get_parcel(tracking_number)
        if point_id not in [point["point_id"] for point in pickup_points]:
            raise ValueError(f"unknown pickup point {point_id!r}: ids come from find_pickup_points")
        parcel["pickup_point"] = point_id
        return f"{tracking_number} will be delivered to {point_id}"

    environment.add_tool(track_parcel, read_only=True)
    environment.add_tool(change_delivery_day)
    environment.add_tool(find_pickup_points, read_only=True)
    environment.add_tool(redirect_parcel)
    return environment


def make_smart_home(unavailable_count: int = 0) -> Environment:
    """Create a smart home whose thermometers are unavailable for the first `unavailable_count` calls."""
    environment = Environment(
        {
            "devices": {"hall lamp": "off", "kitchen lamp": "on", "ceiling fan": "off"},
            "heating": {"bathroom": 19.0, "nursery": 20.0, "study": 18.5},
            "scene": None,
        }
    )
    temperatures = {"bathroom": 19.2, "nursery": 18.6, "study": 20.1}
    outage = Outage(unavailable_count, "503 Service Unavailable: the sensor gateway is restarting")

    def get_zone(zone: str) -> str:
        name = _normalize_name(zone)
        if name not in temperatures:
            raise LookupError(f"unknown zone {zone!r}, zones are: {', '.join(temperatures)}")
        return name

    async def switch_device(device: str, power: str) -> str:
        """Switch a device on or off.

        Args:
            device: name of the device, such as kitchen lamp
            power: on or off
        """
        name = _normalize_name(device)
        if name not in environment.state["devices"]:
            raise LookupError(f"unknown device {device!r}, devices are: {', '.join(environment.state['devices'])}")
        if power not in ("on", "off"):
            raise ValueError(f"power must be on or off, got {power!r}")
        environment.state["devices"][name] = power
        return f"{name}: {power}"

    async def set_heating(zone: str, celsius: float) -> str:
        """Set the target temperature of a zone.

        Args:
            zone: name of the zone, such as study
            celsius: target temperature in degrees Celsius
        """
        environment.state["heating"][get_zone(zone)] = float(celsius)
        return f"{zone}: target {celsius} °C"

    async def read_temperature(zone: str) -> dict[str, Any]:
        """Measure the temperature in a zone.

        Args:
            zone: name of the zone, such as study
        """
        outage.fail_while_active()
        return {"zone": zone, "celsius": temperatures[get_zone(zone)]}

    async def start_scene(scene: str) -> str:
        """Start a scene that was saved before.

        Args:
            scene: the scene
        """
        scenes = ("morning_01", "movie_night_02", "away_03")
        if scene not in scenes:
            raise LookupError(f"scene not found: {scene}. Available scenes: {', '.join(scenes)}")
        environment.state["scene"] = scene
        return f"{scene} is active"

    environment.add_tool(switch_device)
    environment.add_tool(set_heating)
    environment.add_tool(read_temperature, read_only=True)
    environment.add_tool(start_scene)
    return environment


def make_kitchen(unavailable_count: int = 0) -> Environment:
    """Create recipes, unavailable for the first `unavailable_count` calls, a shopping list and dinners of a week."""
    environment = Environment({"shopping_list": {"牛奶"}, "dinners": {"mon": "清蒸鲈鱼"}})
    recipes: dict[str, dict[str, Any]] = {
        "番茄炒蛋": {"ingredients": ["番茄", "鸡蛋", "小葱"], "steps": ["鸡蛋打散炒熟", "番茄炒软", "合炒，撒小葱"]},
        "红烧肉": {"ingredients": ["五花肉", "冰糖", "生抽"], "steps": ["五花肉焯水", "炒糖色", "小火炖 75 分钟"]},
        "清蒸鲈鱼": {"ingredients": ["鲈鱼", "姜"], "steps": ["鲈鱼铺姜", "大火蒸 8 分钟"]},
    }
    outage = Outage(unavailable_count, "503：菜谱服务暂时不可用，请稍后重试")

    def find_recipe(name: str) -> str:
        recipe = next((recipe for recipe in recipes if recipe in str(name)), None)
        if recipe is None:
            raise LookupError(f"没有菜谱：{name}")
        return recipe

    def split_items(items: str) -> set[str]:
        return {item.strip() for item in re.split(r"[,，、;；\n]", items) if item.strip()}

    async def get_recipe(name: str) -> dict[str, Any]:
        """查看菜谱的食材和步骤。

        Args:
            name: 菜名
        """
        outage.fail_while_active()
        recipe = find_recipe(name)
        return {"name": recipe, **recipes[recipe]}

    async def add_to_shopping_list(items: str) -> str:
        """把食材加入购物清单。

        Args:
            items: 食材，多个食材用逗号分隔
        """
        environment.state["shopping_list"] |= split_items(items)
        return f"购物清单：{'、'.join(sorted(environment.state['shopping_list']))}"

    async def remove_from_shopping_list(items: str) -> str:
        """从购物清单删除食材。

        Args:
            items: 食材，多个食材用逗号分隔
        """
        missing_items = split_items(items) - environment.state["shopping_list"]
        if missing_items:
            raise LookupError(f"购物清单里没有：{'、'.join(sorted(missing_items))}")
        environment.state["shopping_list"] -= split_items(items)
        return f"购物清单：{'、'.join(sorted(environment.state['shopping_list']))}"

    async def plan_dinner(day: str, recipe: str) -> str:
        """安排某天的晚餐。

        Args:
            day: 星期几
            recipe: 菜名
        """
        days = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
        if str(day).lower() not in days:
            raise ValueError(f"day 无效：{day}，可用值：{', '.join(days)}")
        environment.state["dinners"][str(day).lower()] = find_recipe(recipe)
        return f"{day} 晚餐：{recipe}"

    environment.add_tool(get_recipe, read_only=True)
    environment.add_tool(add_to_shopping_list)
    environment.add_tool(remove_from_shopping_list)
    environment.add_tool(plan_dinner)
    return environment


def make_music() -> Environment:
    """Create a music player with playlists and a catalogue of tracks."""
    environment = Environment({"playlists": {"Running": ["t-101", "t-205"], "Dinner": ["t-330"]}, "crossfade_ms": 0})
    tracks = [
        {"track_id": "t-101", "title": "Long Road North", "artist": "The Ferrymen"},
        {"track_id": "t-417", "title": "Harvest Lights", "artist": "Orla Quinn"},
        {"track_id": "t-330", "title": "Slow Tide", "artist": "Orla Quinn"},
    ]

    def find_playlist(playlist: str) -> str:
        playlists = environment.state["playlists"]
        name = next((name for name in playlists if name.casefold() == str(playlist).strip().casefold()), None)
        if name is None:
            raise LookupError(f"playlist {playlist!r} not found, playlists are: {', '.join(playlists)}")
        return str(name)

    async def search_tracks(query: str) -> list[dict[str, str]]:
        """Search the catalogue.

        Args:
            query: title or artist
        """
        text = query.casefold()
        return [
            track
            for track in tracks
            if text in f"{track['title']} {track['artist']}".casefold() or track["title"].casefold() in text
        ]

    async def add_track(playlist: str, track_id: str) -> str:
        """Add a track to the end of a playlist.

        Args:
            playlist: name of the playlist
            track_id: id of the track
        """
        name = find_playlist(playlist)
        if track_id not in [track["track_id"] for track in tracks]:
            raise ValueError(f"invalid track_id {track_id!r}: expected an id from search_tracks")
        environment.state["playlists"][name].append(track_id)
        return f"{track_id} was added to {name}"

    async def create_playlist(name: str) -> str:
        """Create an empty playlist.

        Args:
            name: its name
        """
        environment.state["playlists"].setdefault(name.strip(), [])
        return f"playlist {name} was created"

    async def rename_playlist(playlist: str, new_name: str) -> str:
        """Give a playlist another name.

        Args:
            playlist: its name now
            new_name: its new name
        """
        track_ids = environment.state["playlists"].pop(find_playlist(playlist))
        environment.state["playlists"][new_name.strip()] = track_ids
        return f"{playlist} is now called {new_name}"

    async def set_crossfade(duration: int) -> str:
        """Set how long one track fades into the next.

        Args:
            duration: length of the crossfade
        """
        if not 1000 <= int(duration) <= 12000:
            raise ValueError(f"duration {duration} is out of range: expected milliseconds from 1000 to 12000")
        environment.state["crossfade_ms"] = int(duration)
        return f"crossfade: {duration} ms"

    environment.add_tool(search_tracks, read_only=True)
    environment.add_tool(add_track)
    environment.add_tool(create_playlist)
    environment.add_tool(rename_playlist)
    environment.add_tool(set_crossfade)
    return environment


def make_gym() -> Environment:
    """Create a gym with members and two classes on Friday, one of them full."""
    environment = Environment(
        {
            "bookings": [],
            "members": {
                "M-2207": {"name": "Jonas Weber", "plan": "PLAN_BASIC", "paused_weeks": 0},
                "M-2231": {"name": "Sofia Rossi", "plan": "PLAN_GOLD", "paused_weeks": 0},
            },
        }
    )
    classes = {"YG-31": ("yoga", "18:30", 4), "PL-08": ("pilates", "19:00", 0)}

    def count_free_places(class_id: str) -> int:
        return classes[class_id][2] - [booked_id for booked_id, _ in environment.state["bookings"]].count(class_id)

    def get_member(member_no: str) -> dict[str, Any]:
        member: dict[str, Any] | None = environment.state["members"].get(str(member_no).upper())
        if member is None:
            raise LookupError(f"member {member_no!r} does not exist")
        return member

    async def list_classes(weekday: str) -> list[dict[str, Any]]:
        """List the classes of a weekday with their free places.

        Args:
            weekday: the weekday, such as Monday
        """
        if weekday.strip().casefold() not in WEEKDAYS:
            raise ValueError(f"weekday {weekday!r} is not one of {', '.join(WEEKDAYS)}")
        if weekday.strip().casefold() != "friday":
            return []
        return [
            {"class_id": class_id, "name": name, "starts": starts, "free_places": count_free_places(class_id)}
            for class_id, (name, starts, _) in classes.items()
        ]

    async def book_class(class_id: str, member_no: str) -> str:
        """Book a place in a class for a member.

        Args:
            class_id: id of the class
            member_no: the member's number
        """
        get_member(member_no)
        if class_id not in classes:
            raise LookupError(f"class {class_id!r} does not exist: use an id from list_classes")
        if count_free_places(class_id) < 1:
            raise ValueError(f"409 Conflict: class {class_id} is fully booked")
        environment.state["bookings"].append([class_id, str(member_no).upper()])
        return f"{member_no} has a place in {class_id}"

    async def pause_membership(member_no: str, weeks: int) -> str:
        """Pause a membership.

        Args:
            member_no: the member's number
            weeks: for how many weeks
        """
        get_member(member_no)["paused_weeks"] = int(weeks)
        return f"{member_no} is paused for {weeks} weeks"

    async def change_plan(member_no: str, plan: str) -> str:
        """Move a member to another plan.

        Args:
            member_no: the member's number
            plan: the new plan
        """
        plans = ("PLAN_BASIC", "PLAN_PLUS", "PLAN_GOLD")
        member = get_member(member_no)
        if plan not in plans:
            raise ValueError(f"plan {plan!r} is not a valid choice, choose from {', '.join(plans)}")
        member["plan"] = plan
        return f"{member_no}: {plan}"

    environment.add_tool(list_classes, read_only=True)
    environment.add_tool(book_class)
    environment.add_tool(pause_membership)
    environment.add_tool(change_plan)
    return environment
