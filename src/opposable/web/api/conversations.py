"""The routes of conversations."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Path, Query
from starlette.responses import Response

from opposable.app.inputs import replace_surrogates
from opposable.domain.json_forms import message_to_json
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse
from opposable.web.api.schemas import (
    CONVERSATION_ID,
    ConversationDetailResponse,
    ConversationResponse,
    DeleteResponse,
    RenameRequest,
)
from opposable.web.api.serializers import json_response, serialize_conversation
from opposable.web.errors import bad_input_error, error_responses, not_found_error

router = ApiRouter(prefix="/agent/conversations", tags=["conversations"], dependencies=[Depends(RequireScope("chat"))])

ConversationId = Annotated[str, Path(pattern=CONVERSATION_ID, examples=["conv-123"])]


@router.get(
    "", response_model=PageResponse[ConversationResponse], responses=error_responses(), summary="List conversations"
)
async def list_conversations(
    service: ServiceDep, principal: PrincipalDep, after: AfterQuery = "", limit: LimitQuery = 100
) -> Response:
    """List the conversations of the API key, the last updated first."""
    page = await service.store.conversations.list(principal.key_id, after=after, limit=limit)
    return json_response({"items": [serialize_conversation(item) for item in page.items], "next": page.next_cursor})


@router.get(
    "/{conversation_id}",
    response_model=ConversationDetailResponse,
    responses=error_responses(404),
    summary="Get a conversation",
)
async def get_conversation(
    service: ServiceDep,
    principal: PrincipalDep,
    conversation_id: ConversationId,
    start: Annotated[int, Query(ge=0, le=2**31 - 1, description="The index of the first message to return.")] = 0,
) -> Response:
    """Get a conversation with its messages from index `start` on."""
    conversation = await service.get_conversation(conversation_id, principal.key_id)
    if conversation is None:
        raise not_found_error(f"There is no conversation {conversation_id!r}.")
    messages = await service.store.conversations.list_messages(conversation.conversation_id, start=start)
    return json_response(
        {**serialize_conversation(conversation), "messages": [message_to_json(message) for message in messages]}
    )


@router.put(
    "/{conversation_id}",
    response_model=ConversationResponse,
    responses=error_responses(404),
    summary="Rename a conversation",
)
async def rename_conversation(
    service: ServiceDep, principal: PrincipalDep, conversation_id: ConversationId, body: RenameRequest
) -> Response:
    """Change the title of a conversation."""
    conversation = await service.get_conversation(conversation_id, principal.key_id)
    title = " ".join(replace_surrogates(body.title).split())
    if not title:
        raise bad_input_error("The title is empty. Write at least one character.")
    if conversation is None or not await service.store.conversations.rename(conversation.conversation_id, title):
        raise not_found_error(f"There is no conversation {conversation_id!r}.")
    return json_response(serialize_conversation(replace(conversation, title=title)))


@router.delete(
    "/{conversation_id}",
    response_model=DeleteResponse,
    responses=error_responses(404, 409),
    summary="Delete a conversation",
)
async def delete_conversation(
    service: ServiceDep, principal: PrincipalDep, conversation_id: ConversationId
) -> Response:
    """Cancel the active runs of a conversation, and delete it with its messages."""
    if not await service.delete_conversation(conversation_id, principal.key_id):
        raise not_found_error(f"There is no conversation {conversation_id!r}.")
    return json_response({"deleted": True})
