"""Repository of the responses that the gateway stores, or that servers of models store."""

from sqlalchemy import delete, select

from opposable.domain.records import StoredResponse
from opposable.store.database import Repository
from opposable.store.rows import to_record, to_row
from opposable.store.tables import responses


class ResponseRepository(Repository):
    """Stored responses, by id."""

    async def add(self, *added: StoredResponse) -> None:
        """Store responses. The first one with an id stays."""
        rows = [
            to_row(response, "response_id") | {"id": response.response_id, "items": list(response.items)}
            for response in added
        ]
        insert = self._database.build_insert(responses).values(rows).on_conflict_do_nothing(index_elements=["id"])
        await self._database.execute(insert)

    async def get(self, response_id: str) -> StoredResponse | None:
        """Return the response with this id."""
        rows = await self._database.fetch(select(responses).where(responses.c.id == response_id))
        if not rows:
            return None
        items = rows[0]._mapping["items"]  # noqa: SLF001 - the documented name; a row may have methods of any name
        return to_record(StoredResponse, rows[0], response_id=response_id, items=tuple(items))

    async def delete(self, response_id: str) -> None:
        """Delete the response with this id."""
        await self._database.execute(delete(responses).where(responses.c.id == response_id))
