"""Only files that the owner allowed are loaded."""

import stat
from pathlib import Path

import pytest
from tests.app.settings import create_settings

from opposable.app.allowed_files import AllowedFiles
from opposable.app.default_store import open_default_store
from opposable.app.spec_loader import SpecLoader, ToolPermissions
from opposable.app.stored_tools import delete_tool, open_allowed_files, save_tools
from opposable.app.tools import open_tools
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.specs import FunctionToolSpec
from opposable.settings import Settings
from opposable.tools.library import ToolLibrary
from opposable.tools.python_file import create_file_specs

pytestmark = pytest.mark.anyio

SOURCE = b'''
from pathlib import Path

Path(__file__).with_name("has run").touch()

def stock(item: str) -> int:
    """How many pieces are in stock."""
    return 4711

def price(item: str) -> int:
    """The price of an item."""
    return 5
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_bytes(SOURCE)
    return path


@pytest.fixture
def settings(tmp_path: Path, monkeypatch) -> Settings:
    monkeypatch.setenv("OPPOSABLE_HOME", str(tmp_path / "home"))
    return create_settings(tmp_path)


def create_spec(path: Path) -> FunctionToolSpec:
    return FunctionToolSpec(tool_id="stock", module_path=str(path), function_name="stock")


async def test_a_row_of_the_store_alone_loads_no_code(settings, shop):
    async with open_default_store(settings) as store:
        await store.tools.save(create_spec(shop))
    async with open_tools(settings) as library:
        assert library.find_tool("stock") is None
    [registration] = await save_tools(settings, [create_spec(shop)], replace=True)
    assert registration.rejected == {
        "stock": f"The file {shop} is not allowed here. Review it, then run: opposable tools add {shop}"
    }
    assert not shop.with_name("has run").exists()


async def test_the_functions_of_an_allowed_file_are_available(settings, shop):
    open_allowed_files().allow(shop, SOURCE)
    await save_tools(settings, create_file_specs(shop, SOURCE)[0])
    async with open_tools(settings) as library:
        assert (await library.call("stock", {"item": "bolt"})).data == 4711


@pytest.mark.parametrize(
    ("content", "message"),
    [(SOURCE + b"# changed", "has changed since it was allowed"), (None, "cannot be read: No such file or directory")],
)
async def test_a_changed_or_missing_file_is_not_loaded(settings, shop, content, message):
    open_allowed_files().allow(shop, SOURCE)
    shop.unlink() if content is None else shop.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        open_allowed_files().load_module(shop)
    assert not shop.with_name("has run").exists()


async def test_a_loader_without_the_permission_loads_no_file(shop):
    async with SpecLoader(ToolLibrary(), ToolPermissions()) as loader:
        registration = await loader.load(create_spec(shop))
    assert registration.rejected == {"stock": "stock: Python files may not be used here. Name a module."}


async def test_the_permissions_of_a_project_folder_do_not_count(tmp_path, shop, monkeypatch):
    monkeypatch.delenv("OPPOSABLE_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    AllowedFiles(tmp_path / "project" / "allowed_files.json").allow(shop, SOURCE)
    settings = Settings(_env_file=None, home=tmp_path / "project")
    async with open_default_store(settings) as store:
        await store.tools.save(create_spec(shop))
    async with open_tools(settings) as library:
        assert library.find_tool("stock") is None


async def test_a_function_stays_disabled_when_its_file_is_added_again(settings, shop):
    allowed_files = open_allowed_files()
    allowed_files.allow(shop, SOURCE)
    specs, _ = create_file_specs(shop, SOURCE)
    await save_tools(settings, specs)
    async with open_default_store(settings) as store:
        await store.tools.set_enabled("stock", False)
    changed = SOURCE.replace(b"How many", b"The number of")
    shop.write_bytes(changed)
    allowed_files.allow(shop, changed)
    await save_tools(settings, create_file_specs(shop, changed)[0])
    async with open_default_store(settings) as store:
        stock = await store.tools.get("stock")
    assert stock is not None
    assert (stock.enabled, stock.description) == (False, "The number of pieces are in stock.")


async def test_the_permission_ends_with_the_last_function(settings, shop):
    allowed_files = open_allowed_files()
    allowed_files.allow(shop, SOURCE)
    await save_tools(settings, create_file_specs(shop, SOURCE)[0])
    await delete_tool(settings, "stock")
    assert list(allowed_files.read()) == [str(shop)]
    await delete_tool(settings, "price")
    assert allowed_files.read() == {}


def test_the_entries_are_readable_by_the_owner_alone(tmp_path):
    allowed_files = AllowedFiles(tmp_path / "state" / "allowed_files.json")
    allowed_files.allow(tmp_path / "a.py", b"")
    assert stat.S_IMODE(allowed_files.path.stat().st_mode) == 0o600


def test_unreadable_entries_are_an_error(tmp_path):
    (tmp_path / "allowed_files.json").write_text("{")
    with pytest.raises(BadInput, match="Delete it, and add the files again"):
        AllowedFiles(tmp_path / "allowed_files.json").read()


async def test_permissions_that_cannot_be_written_leave_no_draft(tmp_path, shop):
    path = tmp_path / "state" / "allowed_files.json"
    path.mkdir(parents=True)
    with pytest.raises(OpposableError, match=r"Cannot write .*allowed_files\.json: Is a directory") as caught:
        AllowedFiles(path)._write({str(shop): "0"})
    assert not isinstance(caught.value, BadInput)
    assert list(path.parent.iterdir()) == [path]
