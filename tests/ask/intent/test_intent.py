from opposable.ask.intent.intent import StructuredIntent


def test_the_json_of_the_specification_is_an_intent():
    intent = StructuredIntent.model_validate(
        {
            "intent_type": "trend",
            "metrics": ["revenue"],
            "dimensions": [],
            "time": {"granularity": "quarter", "year": 2024, "quarter": 1, "comparison": None},
            "filters": [{"dimension": "city", "value": "Berlin", "operator": "="}],
            "exclusions": [],
            "order_by": {"column": "revenue", "direction": "DESC"},
            "limit": 10,
        }
    )
    assert intent.time is not None
    assert intent.time.comparison is None
    assert intent.order_by is not None
    assert intent.order_by.direction == "DESC"
