"""The conversations that responses can continue, in the store of the service or in memory."""

from collections import OrderedDict
from collections.abc import Sequence

from opposable.domain.messages import Message
from opposable.domain.records import Conversation
from opposable.store.conversations import ConversationRepository
from opposable.web.openai_errors import GatewayError

MAX_RESPONSES_IN_MEMORY = 1000


class ResponseStore:
    """Stores the messages up to a response under its id.

    Args:
        conversations: Where they are stored, None for the memory of this process.
    """

    def __init__(self, conversations: ConversationRepository | None = None) -> None:
        self._conversations = conversations
        self._memory: OrderedDict[str, tuple[str, tuple[Message, ...]]] = OrderedDict()

    async def save(self, response_id: str, owner: str, messages: Sequence[Message]) -> None:
        """Store the messages up to a response, its reply included.

        Raises:
            StoreError: If the store fails.
        """
        if self._conversations is None:
            self._memory[response_id] = (owner, tuple(messages))
            while len(self._memory) > MAX_RESPONSES_IN_MEMORY:
                self._memory.popitem(last=False)
            return
        title = next((message.content for message in messages if message.role == "user"), "")
        await self._conversations.add(Conversation(response_id, owner, "", " ".join(title.split())[:80]))
        await self._conversations.append_messages(response_id, messages)

    async def load(self, response_id: str, owner: str) -> tuple[Message, ...]:
        """Return the messages up to a response.

        Raises:
            GatewayError: 404, if there is no such response of this owner.
            StoreError: If the store fails.
        """
        if self._conversations is None:
            stored_owner, messages = self._memory.get(response_id, ("", ()))
            if messages and stored_owner == owner:
                return messages
        else:
            conversation = await self._conversations.get(response_id)
            if conversation is not None and conversation.owner == owner:
                return await self._conversations.list_messages(response_id)
        raise GatewayError(
            404,
            f"There is no response {response_id[:100]!r}. It was not stored, or belongs to another API key.",
            param="previous_response_id",
            code="previous_response_not_found",
        )

    async def delete(self, response_id: str, owner: str) -> None:
        """Delete the messages of a response. Raises: as `load`."""
        await self.load(response_id, owner)
        if self._conversations is None:
            del self._memory[response_id]
        else:
            await self._conversations.delete(response_id)
