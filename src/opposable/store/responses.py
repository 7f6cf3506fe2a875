"""Repository of the responses that the gateway stores, or that servers of models store."""

from sqlalchemy import delete, select

from opposable.domain.records import StoredResponse
from opposable.store.database import StoreDatabase
from opposable.store.tables import responses


class ResponseRepository:
    """Stored responses, by id."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, *added: StoredResponse) -> None:
        """Store responses. The first one with an id stays."""
        rows = [
            {
                "id": response.response_id,
                "owner": response.owner,
                "model": response.model,
                "url": response.url,
                "items": list(response.items),
                "body": response.body,
                "created_at": response.created_at,
            }
            for response in added
        ]
        insert = self._database.build_insert(responses).values(rows).on_conflict_do_nothing(index_elements=["id"])
        async with self._database.begin_write() as connection:
            await connection.execute(insert)

    async def get(self, response_id: str) -> StoredResponse | None:
        """Return the response with this id."""
        query = select(responses).where(responses.c.id == response_id)
        async with self._database.begin_read() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            return None
        items = row._mapping["items"]  # noqa: SLF001 - the documented name; a row may have methods of any name
        return StoredResponse(row.id, row.owner, row.model, row.url, tuple(items), row.body, row.created_at)

    async def delete(self, response_id: str) -> None:
        """Delete the response with this id."""
        async with self._database.begin_write() as connection:
            await connection.execute(delete(responses).where(responses.c.id == response_id))
