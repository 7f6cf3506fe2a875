"""The routes of conversations: listed, read, deleted, each owner's own."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from opposable.web.api.dependencies import Needs, ThePrincipal, TheService
from opposable.web.api.pagination import After, Limit, Part
from opposable.web.api.schemas import CONVERSATION_ID, Deleted, ShownConversation, WholeConversation
from opposable.web.api.serializers import answered, conversation_as_json, message_as_json
from opposable.web.errors import documented, not_found

router = APIRouter(prefix="/agent/conversations", tags=["conversations"], dependencies=[Depends(Needs("chat"))])

ConversationId = Annotated[str, Path(pattern=CONVERSATION_ID, examples=["conv-123"])]


@router.get(
    "",
    response_model=Part[ShownConversation],
    responses=documented(),
    summary="Conversations, the last continued first",
)
async def list_conversations(
    service: TheService, principal: ThePrincipal, after: After = "", limit: Limit = 100
) -> Response:
    """The conversations of whoever asks."""
    page = await service.store.conversations.list(principal.key_id, after=after, limit=limit)
    return answered({"items": [conversation_as_json(one) for one in page.items], "next": page.next})


@router.get(
    "/{conversation_id}",
    response_model=WholeConversation,
    responses=documented(404),
    summary="A conversation and what was said",
)
async def one_conversation(
    service: TheService,
    principal: ThePrincipal,
    conversation_id: ConversationId,
    start: Annotated[int, Query(ge=0, le=2**31 - 1, description="The number of the first message given.")] = 0,
) -> Response:
    """A conversation, with its messages from number `start` on."""
    found = await service.conversation(conversation_id, principal.key_id)
    if found is None:
        raise not_found(f"There is no conversation {conversation_id!r}.")
    messages = await service.store.conversations.messages(conversation_id, start=start)
    return answered({**conversation_as_json(found), "messages": [message_as_json(one) for one in messages]})


@router.delete("/{conversation_id}", response_model=Deleted, responses=documented(404), summary="Delete a conversation")
async def delete_conversation(
    service: TheService, principal: ThePrincipal, conversation_id: ConversationId
) -> Response:
    """Forget a conversation and all that was said in it."""
    found = await service.conversation(conversation_id, principal.key_id)
    if found is None or not await service.store.conversations.delete(conversation_id):
        raise not_found(f"There is no conversation {conversation_id!r}.")
    return answered({"deleted": True})
