"""When a missing store is created."""

from typing import Literal

StoreCreation = Literal["never", "if_empty", "always"]
"""`if_empty`: only in a database without tables of other programs."""
