"""Stored responses: those of the gateway, and which API key created those that a model's server stores."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from opposable.domain.records import StoredResponse, get_utc_now
from opposable.store.responses import ResponseRepository
from opposable.web.openai_errors import GatewayError

MAX_RESPONSES_IN_MEMORY = 1000


class ResponseStore:
    """Stores responses for their API key.

    Args:
        repository: Where they are stored, None for the memory of this process.
    """

    def __init__(self, repository: ResponseRepository | None = None) -> None:
        self._repository = repository
        self._memory: OrderedDict[str, StoredResponse] = OrderedDict()

    async def save(
        self,
        response_id: str,
        owner: str,
        model: str,
        *,
        items: tuple[dict[str, Any], ...] = (),
        body: dict[str, Any] | None = None,
    ) -> None:
        """Store a response, see `StoredResponse`.

        Raises:
            StoreError: If the store fails.
        """
        await self._add([StoredResponse(response_id, owner, model, "", items, body, get_utc_now())])

    async def save_relayed(self, ids: Sequence[str], owner: str, model: str, url: str) -> None:
        """Store which key created a response, or its items, on the server that has the API at this URL.

        Raises: as `save`.
        """
        await self._add([StoredResponse(one, owner, model, url, (), None, get_utc_now()) for one in ids])

    async def load(self, response_id: str, owner: str, *, param: str = "response_id") -> StoredResponse:
        """Return a response.

        Raises:
            GatewayError: 404, if there is no such response of this owner; `param` names its id in the request.
            StoreError: If the store fails.
        """
        stored = await self._get(response_id)
        if stored is None or stored.owner != owner:
            raise build_missing_error(response_id, param)
        return stored

    async def load_item(self, item_id: str, owner: str, *, param: str) -> dict[str, Any]:
        """Return an item of a response that is stored here. Raises: as `load`."""
        response_id = f"resp_{item_id.partition('_')[2].partition('_')[0]}"
        stored = await self._get(response_id)
        output = stored.body["output"] if stored is not None and stored.owner == owner and stored.body else ()
        for item in output:
            if item["id"] == item_id:
                return dict(item)
        raise build_missing_error(item_id, param)

    async def check_relayed(
        self, response_id: str, owner: str, url: str, *, param: str, allows_unknown: bool = False
    ) -> None:
        """Check that a key may use a response, or an item of one, on the server that has the API at this URL.

        Without a key, or with `allows_unknown`, those that the gateway does not know may be used too.

        Raises: as `load`.
        """
        stored = await self._get(response_id)
        is_unknown = stored is None and (allows_unknown or not owner)
        if not is_unknown and (stored is None or (stored.owner, stored.url) != (owner, url)):
            raise build_missing_error(response_id, param)

    async def delete(self, response_id: str) -> None:
        """Delete a response. Raises: `StoreError`, if the store fails."""
        if self._repository is not None:
            await self._repository.delete(response_id)
        else:
            self._memory.pop(response_id, None)

    async def _add(self, responses: Sequence[StoredResponse]) -> None:
        if self._repository is not None:
            await self._repository.add(*responses)
            return
        for response in responses:
            self._memory.setdefault(response.response_id, response)
        while len(self._memory) > MAX_RESPONSES_IN_MEMORY:
            self._memory.popitem(last=False)

    async def _get(self, response_id: str) -> StoredResponse | None:
        if self._repository is not None:
            return await self._repository.get(response_id)
        return self._memory.get(response_id)


def build_missing_error(response_id: str, param: str) -> GatewayError:
    """Return the error for a response, or an item of one, that this key cannot use with this model."""
    kind = "conversation" if param == "conversation" else "item" if param.startswith("input") else "response"
    return GatewayError(
        404,
        f"There is no {kind} {response_id[:100]!r} of this model's server and API key, or it was not stored.",
        param=param,
        code="previous_response_not_found" if param == "previous_response_id" else f"{kind}_not_found",
    )
