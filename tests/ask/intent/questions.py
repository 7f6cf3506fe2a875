"""The values, intents and dates of the parser tests."""

import datetime

from opposable.ask.intent.intent import StructuredIntent

TODAY = datetime.date(2024, 12, 31)
VALUES = {"city": ["Berlin", "上海"], "customer": ["Ann", "Bob", "李雷", "O'Neil"], "product": ["tea", "cup", "40"]}


def build_intent(*metrics: str, **fields: object) -> StructuredIntent:
    """Build an intent with these metrics."""
    return StructuredIntent.model_validate({"metrics": metrics, **fields})
