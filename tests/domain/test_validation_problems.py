"""Errors of pydantic become plain words."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError, field_validator

from opposable.domain.specs import AgentSpec, AnyToolSpec
from opposable.domain.validation_problems import describe_problems


class Limits(BaseModel):
    model_config = ConfigDict(extra="forbid")
    turns: int = Field(default=1, gt=0, le=9)


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"] = "dog"
    tricks: list[str] = []


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    item: str = Field(default="", max_length=5, pattern="^[a-z]*$")
    title: str = Field(default="x", min_length=1)
    paid: bool = False
    price: float = 1.0
    size: Literal["small", "large"] = "small"
    limits: Limits = Limits()
    parts: list[Limits] = Field(default=[], max_length=1)
    pet: Annotated[Cat | Dog, Discriminator("kind")] = Cat()
    options: dict[str, Limits] = {}

    @field_validator("price")
    @classmethod
    def _check_price(cls, price: float) -> float:
        if price < 0:
            raise ValueError("a price is not negative")
        return price


CASES: list[tuple[Any, str]] = [
    ({"item": 5}, "item: must be text"),
    ({"item": "abcdef"}, "item: must have at most 5 characters"),
    ({"item": "A"}, "item: must match the pattern ^[a-z]*$"),
    ({"title": ""}, "title: must not be empty"),
    ({"paid": "perhaps"}, "paid: must be true or false"),
    ({"price": "much"}, "price: must be a number"),
    ({"price": -1}, "price: a price is not negative"),
    ([], "the data: must be an object"),
    ({"size": "huge"}, "size: must be 'small' or 'large'"),
    ({"limits": {"turns": 0}}, "limits.turns: must be greater than 0"),
    ({"limits": {"turns": 10}}, "limits.turns: must be at most 9"),
    ({"limits": {"turns": "many"}}, "limits.turns: must be a whole number"),
    ({"limits": []}, "limits: must be an object"),
    ({"parts": {}}, "parts: must be a list"),
    ({"parts": [{}, {}]}, "parts: must have at most 1 items"),
    ({"pet": {"kind": "fish"}}, "pet: must have the field 'kind' with one of 'cat', 'dog'"),
    ({"pet": {}}, "pet: must have the field 'kind' with one of 'cat', 'dog'"),
    ({"itme": "a"}, "itme: is not a known field (did you mean item?)"),
    ({"limits": {"turn": 1}}, "limits.turn: is not a known field (did you mean turns?)"),
    ({"parts": [{"turn": 1}]}, "parts.0.turn: is not a known field (did you mean turns?)"),
    ({"options": {"a": {"turn": 1}}}, "options.a.turn: is not a known field (did you mean turns?)"),
    ({"pet": {"kind": "dog", "trick": 1}}, "pet.trick: is not a known field (did you mean tricks?)"),
    ({"pet": {"kind": "dog", "zzz": 1}}, "pet.zzz: is not a known field (the fields are kind, tricks)"),
]


@pytest.mark.parametrize(("data", "problem"), CASES)
def test_a_problem_names_the_field_and_the_requirement(data, problem):
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(data)
    assert describe_problems(caught.value, Order) == problem


@pytest.mark.parametrize(
    ("model", "data", "problem"),
    [
        (AgentSpec, {"agent_id": "a", "modle": "m"}, "modle: is not a known field (did you mean model?)"),
        (
            AnyToolSpec,
            {"tool_id": "a", "endpoint": {"url_template": "https://a.example", "metod": "GET"}},
            "endpoint.metod: is not a known field (did you mean method?)",
        ),
        (AnyToolSpec, {"type": "http"}, "tool_id: is required; endpoint: is required"),
        (
            AnyToolSpec,
            {"type": "foo", "tool_id": "a"},
            "the data: must have the field 'tool_type' or 'type' with one of 'function', 'http', 'mcp_server', 'skill'",
        ),
    ],
)
def test_specs_name_the_nearest_field(model, data, problem):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(model).validate_python(data)
    assert describe_problems(caught.value, model) == problem


def test_values_are_left_out():
    with pytest.raises(ValidationError) as caught:
        Order.model_validate({"item": 5, "limits": "a secret"})
    assert "secret" not in describe_problems(caught.value)
