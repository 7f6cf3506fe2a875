"""Write the OpenAPI document of the service, from which the types of the console are generated.

Run: python scripts/write_openapi.py FILE
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from opposable.models.scripted import ScriptedModel
from opposable.service.service import open_service
from opposable.settings import Settings
from opposable.web.server import create_app


async def create_openapi() -> str:
    """Return the document as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(_env_file=None, home=Path(folder))
        async with open_service(settings, {"model": ScriptedModel("hello")}) as service:
            return json.dumps(create_app(service).openapi(), ensure_ascii=False)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(asyncio.run(create_openapi()))
