"""Functions as tools of the command line: opposable tools add examples/my_functions.py"""

from typing import Literal

STOCK = {"bolt": 4711, "nut": 12, "screw": 0}


def stock(item: str) -> int:
    """How many pieces of an item are in stock.

    Args:
        item: the item's name, such as bolt.
    """
    if item not in STOCK:
        raise ValueError(f"There is no item {item!r}. The items are: {', '.join(STOCK)}.")
    return STOCK[item]


def convert_length(value: float, unit: Literal["cm", "inch"]) -> str:
    """Convert a length between centimetres and inches.

    Args:
        value: the length.
        unit: the unit of the length; the result has the other one.
    """
    return f"{_round(value / 2.54)} inch" if unit == "cm" else f"{_round(value * 2.54)} cm"


def _round(value: float) -> float:
    """A function with a leading underscore is not a tool."""
    return round(value, 2)
