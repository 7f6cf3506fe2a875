"""The schema is upgraded by one process at a time, and stored data follow renamed modules."""

import asyncio
import subprocess
import sys
from importlib.util import find_spec

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from tests.store.records import START

from opposable.domain.errors import StoreTooNew
from opposable.domain.records import Run
from opposable.domain.specs import FunctionToolSpec
from opposable.store import open_store
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import parse_database_url
from opposable.store.migration_runner import _build_alembic_config, list_revisions, migrate_schema
from opposable.store.migrations.versions.r0004_builtin_tool_modules import NEW_MODULES
from opposable.store.tables import metadata, tools
from opposable.store.tools import _to_row

pytestmark = pytest.mark.anyio


async def upgrade(database, revision):
    async with database.begin_write() as connection:
        await connection.run_sync(lambda sync: command.upgrade(_build_alembic_config(sync), revision))


@pytest.mark.parametrize("first_revision", [None, "0001"])
async def test_created_and_migrated_schemas_equal_the_table_definitions(empty_url, first_revision):
    database = StoreDatabase(parse_database_url(empty_url))
    if first_revision:
        await upgrade(database, first_revision)
    await migrate_schema(database)

    def differences(connection):
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": False})
        return compare_metadata(context, metadata)

    async with database.begin_read() as connection:
        assert await connection.run_sync(differences) == []
    await database.close()


def test_the_files_of_the_migrations_name_their_revisions():
    scripts = ScriptDirectory.from_config(_build_alembic_config())
    assert list_revisions() == [script.revision for script in scripts.walk_revisions()][::-1]


def test_a_new_or_current_store_is_opened_without_alembic(tmp_path):
    url = f"sqlite:///{tmp_path}/store.sqlite"
    code = f"""
import asyncio, sys
from opposable.store import open_store

async def main():
    async with open_store({url!r}):
        print("alembic" in sys.modules)

asyncio.run(main())
"""
    program = [sys.executable, "-c", code]
    printed = [subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert printed == ["False", "False"]


async def test_newer_schema_is_rejected(url):
    async with open_store(url) as store, store.runs._database.begin_write() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreTooNew, match="has schema 9999, which a newer version of Opposable wrote") as caught:
        async with open_store(url):
            pytest.fail("opened")
    assert "Update Opposable, or use another database" in str(caught.value)


async def test_opening_twice_succeeds(url):
    for _ in range(2):
        async with open_store(url) as store:
            await store.runs.save(Run("r", START))
            assert await store.check_health() == {"database": ""}


OPEN_STORE_CODE = """
import asyncio, sys
from opposable.store import open_store
from opposable.domain.records import Run, get_utc_now
async def main():
    async with open_store(sys.argv[1]) as store:
        await store.runs.save(Run(sys.argv[2], get_utc_now()))
asyncio.run(main())
"""


async def test_several_processes_open_an_empty_database_concurrently(empty_url):
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-W",
            "error",
            "-c",
            OPEN_STORE_CODE,
            empty_url,
            f"r{number}",
            stderr=asyncio.subprocess.PIPE,
        )
        for number in range(3)
    ]
    outputs = [await process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    async with open_store(empty_url) as store:
        assert {run.run_id for run in (await store.runs.list()).items} == {"r0", "r1", "r2"}


@pytest.mark.parametrize("module", NEW_MODULES.values())
def test_new_module_of_a_builtin_tool_exists(module):
    assert find_spec(module) is not None


async def test_module_paths_of_stored_builtin_tools_are_rewritten(empty_url):
    database = StoreDatabase(parse_database_url(empty_url))
    await upgrade(database, "0003")
    old_paths = [*NEW_MODULES, "my_tools.clock"]
    specs = [
        FunctionToolSpec(
            tool_id=f"t{number}", module_path=path, class_name="C", function_name="f", metadata={"a": "中"}
        )
        for number, path in enumerate(old_paths)
    ]
    new_paths = [*NEW_MODULES.values(), "my_tools.clock"]
    async with database.begin_write() as connection:
        await connection.execute(tools.insert(), [_to_row(spec) for spec in specs])
    await database.close()
    async with open_store(empty_url) as store:
        stored_specs = [await store.tools.get(spec.tool_id) for spec in specs]
    assert stored_specs == [
        spec.model_copy(update={"module_path": path}) for spec, path in zip(specs, new_paths, strict=True)
    ]
