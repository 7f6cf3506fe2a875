"""The models that clients can name: those of the server, and the agents of the service."""

import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from opposable.domain.records import load_all_pages
from opposable.models.base import Model
from opposable.service.service import Service
from opposable.web.api.dependencies import get_principal
from opposable.web.gateway.agent_models import AGENT_PREFIX, AgentModel
from opposable.web.openai_errors import GatewayError
from opposable.web.telemetry.tracing import CURRENT_TRACE


class ServedModels:
    """Looks up models by name.

    Args:
        models: The models by the names that clients use. A model may have several names; the first one is listed.
        service: The service whose agents are listed too, None for models alone.
        allowed_models: The models that an API key may use, by the name of the key. Other keys may use all.
    """

    def __init__(
        self, models: Mapping[str, Model], service: Service | None, allowed_models: Mapping[str, Collection[str]]
    ) -> None:
        self._models = models
        self._allowed_models = allowed_models
        self._service = service
        self._created = int(time.time())

    async def find(self, name: str, request: Request) -> Model:
        """Return the model of that name for the client of a request.

        Raises:
            GatewayError: 404, if no model has this name, or the API key must not use it.
        """
        is_allowed = self._is_allowed(name, request)
        model = self._models.get(name) if is_allowed else None
        if model is None and is_allowed and self._service is not None and name.startswith(AGENT_PREFIX):
            record = await self._service.store.agents.get(name.removeprefix(AGENT_PREFIX))
            if record is not None:
                owner, trace_id = get_principal(request).key_id, CURRENT_TRACE.get().trace_id
                model = AgentModel(self._service, record.spec, owner, trace_id)
        if model is None:
            names = [entry["id"] for entry in await self.list(request)]
            message = f"There is no model {name[:200]!r}. Available models: {', '.join(names)}."
            raise GatewayError(404, message, param="model", code="model_not_found")
        return model

    async def list(self, request: Request) -> list[dict[str, Any]]:
        """Return the entries of the models and agents that the client of a request can use."""
        first_names: dict[int, str] = {}
        for name, model in self._models.items():
            first_names.setdefault(id(model), name)
        names = list(first_names.values())
        if self._service is not None:
            agents = self._service.store.agents
            records = await load_all_pages(lambda after: agents.list(after=after, limit=1000))
            names += [f"{AGENT_PREFIX}{record.spec.agent_id}" for record in records]
        return [self.serialize(name) for name in names if self._is_allowed(name, request)]

    def _is_allowed(self, name: str, request: Request) -> bool:
        """Return whether the API key of a request may use a model, by any of its names."""
        principal = get_principal(request)
        allowed = self._allowed_models.get(principal.name) if principal.key_id else None
        if allowed is None or name in allowed:
            return True
        model = self._models.get(name)
        return model is not None and any(self._models.get(other) is model for other in allowed)

    def serialize(self, name: str) -> dict[str, Any]:
        """Return the entry of a model, with the fields of OpenAI and those of Anthropic."""
        entry = {"id": name, "object": "model", "created": self._created, "owned_by": "opposable"}
        created_at = datetime.fromtimestamp(self._created, UTC).isoformat().replace("+00:00", "Z")
        return {**entry, "type": "model", "display_name": name, "created_at": created_at}
