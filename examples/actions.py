"""An object with a state: each public method becomes a tool, and its errors become messages for the model.

python examples/actions.py              with a scripted model
python examples/actions.py local        with the embedded model, or the name of another model
"""

import asyncio
import sys

from opposable import Agent, Model, ScriptedModel, ToolFailed, ToolFinished, ToolRefused, tools_from_object
from opposable.models.scripted import reply_with_calls, tool_call


class Basket:
    """What a customer wants to buy."""

    def __init__(self, prices: dict[str, int], budget: int) -> None:
        self._prices = prices
        self._budget = budget
        self._items: list[str] = []

    def add(self, item: str) -> str:
        """Put an item into the basket.

        Args:
            item: the item's name, such as tea.
        """
        if item not in self._prices:
            raise ToolFailed(f"There is no {item}; the shop sells {', '.join(self._prices)}.")
        if self.total() + self._prices[item] > self._budget:
            raise ToolRefused(f"{item} costs {self._prices[item]}: that is over the budget of {self._budget}.")
        self._items.append(item)
        return f"{item} added"

    def total(self) -> int:
        """What the basket costs."""
        return sum(self._prices[item] for item in self._items)


def make_scripted_model() -> ScriptedModel:
    """Return a model that causes both errors and continues."""
    return ScriptedModel(
        reply_with_calls(tool_call("basket_add", '{"item": "lemonade"}')),
        reply_with_calls(tool_call("basket_add", '{"item": "tea"}')),
        reply_with_calls(tool_call("basket_add", '{"item": "cake"}')),
        reply_with_calls(tool_call("basket_total")),
        "Tea is in the basket, for 3; there is no lemonade, and cake is over the budget.",
    )


async def main(model: Model | str) -> None:
    """Fill the basket and print the result of each call."""
    basket = Basket({"tea": 3, "cake": 40}, budget=10)
    async with Agent(model, tools_from_object(basket, "basket")) as agent:
        async for event in agent.stream("Put lemonade, tea and cake into the basket; what does it cost?"):
            if isinstance(event, ToolFinished):
                print(
                    f"{event.call.name}{event.call.arguments_json}: {event.result.failure or 'ok'}: {event.result.content}"
                )
    print(f"the basket costs {basket.total()}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else make_scripted_model()))
