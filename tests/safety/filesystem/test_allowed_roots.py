"""File tools open no file outside the allowed folders, and none that blocks."""

import os
import threading
from pathlib import Path

import pytest

from opposable.builtin_tools.file_search import FileSearch
from opposable.builtin_tools.logs.log_transform import LogTransform
from opposable.domain.errors import BadInput, InvalidArguments, ToolError, ToolFailed, ToolRefused
from opposable.safety.filesystem.allowed_roots import AllowedRoots

SECRET = "the secret word is xylophone"


@pytest.fixture
def folder(tmp_path):
    """A root with links and pipes inside, and secrets outside."""
    root = tmp_path / "data"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("hello\n")
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "database").mkdir()  # a sibling whose name begins like the root's
    (tmp_path / "database" / "secret.txt").write_text(SECRET)
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / "inner").symlink_to(root / "docs")
    (root / "loop").symlink_to(root / "loop")
    (root / "docs" / "relative.txt").symlink_to("../../secret.txt")
    (root / "null").symlink_to("/dev/null")
    os.mkfifo(root / "pipe.log")
    return root


ESCAPES = [
    "../secret.txt",
    "../../etc/passwd",
    "docs/../../secret.txt",
    "docs/../../database/secret.txt",
    "./.././secret.txt",
    "..\\secret.txt",
    "docs\\..\\..\\secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
    "/dev/stdin",
    "file:///etc/passwd",
    "~/.ssh/id_rsa",
    "~root/.profile",
    "link.txt",
    "up/secret.txt",
    "up",
    "up/database/secret.txt",
    "docs/relative.txt",
    "loop",
    "loop/x",
    "null",
    "inner/a.md",
    "{root}/../secret.txt",
    "{root}base/secret.txt",
    "{root}/up/secret.txt",
    "{parent}/secret.txt",
    "{parent}",
    "..",
    "../data/../secret.txt",
    "..%2fsecret.txt",
    "docs/a.md/../../../secret.txt",
    "docs/a.md\0.txt",
    "pipe.log",
    "",
    "a" * 5000,
    "docs",
    "docs/a.md/x",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_leads_out_of_the_roots(folder, path):
    full_path = path.replace("{root}", str(folder)).replace("{parent}", str(folder.parent))
    for read in (FileSearch([folder]).read_file, LogTransform([folder]).log_transform):
        with pytest.raises(ToolError) as raised:
            read(full_path)
        assert "xylophone" not in str(raised.value)
        assert str(folder.parent) not in str(raised.value).replace(repr(full_path), "")


@pytest.mark.parametrize("root_dir", ["..", "up", "/etc", "inner", "link.txt", "../database", "~"])
def test_no_search_leads_out_of_the_roots(folder, root_dir):
    with pytest.raises(ToolError):
        FileSearch([folder]).file_search("xylophone", root_dir=root_dir)


def test_a_search_of_everything_follows_no_link_and_opens_no_pipe(folder):
    result = FileSearch([folder]).file_search("xylophone")
    assert result["total_matches"] == 0
    assert result["message"] == "Nothing found for 'xylophone': names and text of 1 files were searched."


def test_a_pipe_without_a_writer_does_not_hang(folder):
    failures = []

    def read():
        with pytest.raises(ToolRefused) as raised:
            FileSearch([folder]).read_file("pipe.log")
        failures.append(str(raised.value))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(5)
    assert failures == ["pipe.log is not a regular file (a link, pipe or device)."]


def test_a_file_replaced_by_a_link_before_it_is_opened_is_refused(folder, tmp_path):
    roots = AllowedRoots([folder])
    file = roots.find("docs/a.md")
    (folder / "docs" / "a.md").unlink()
    (folder / "docs" / "a.md").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ToolRefused), roots.open_file(file):
        pass


def test_a_folder_replaced_by_a_link_before_it_is_opened_is_refused(folder, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text(SECRET)
    roots = AllowedRoots([folder])
    file = roots.find("docs/a.md")
    (folder / "docs").rename(folder / "docs-before")
    (folder / "docs").symlink_to(tmp_path / "outside")
    with pytest.raises(ToolRefused, match="links are not followed"), roots.open_file(file):
        pass


def test_concurrent_replacement_by_links_never_shows_outside_files(folder, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text(SECRET)
    search = FileSearch([folder])
    stop = threading.Event()

    def exchange():
        while not stop.is_set():
            (folder / "docs").rename(folder / "away")
            (folder / "docs").symlink_to(tmp_path / "outside")
            (folder / "docs").unlink()
            (folder / "away").rename(folder / "docs")

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(300):
            assert search.file_search("xylophone")["total_matches"] == 0
            try:
                assert "xylophone" not in search.read_file("docs/a.md")["text"]
            except ToolError:
                continue
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    "path",
    [
        "docs/a.md",
        "./docs/a.md",
        "/docs/a.md",
        "data/docs/a.md",
        "docs\\a.md",
        "'docs/a.md'",
        "docs/../docs/a.md",
        "a.md",
        "A.MD",
    ],
)
def test_usual_forms_of_a_path_are_accepted(folder, path):
    roots = AllowedRoots([folder])
    assert roots.format_path(roots.find(path)) == "docs/a.md"


def test_absolute_and_relative_paths_inside_a_root_are_accepted(folder, monkeypatch):
    roots = AllowedRoots([folder])
    assert roots.format_path(roots.find(str(folder / "docs" / "a.md"))) == "docs/a.md"
    monkeypatch.chdir(folder.parent)
    assert roots.format_path(roots.find("./data/docs/a.md")) == "docs/a.md"
    monkeypatch.chdir(folder / "docs")
    assert roots.format_path(roots.find("../docs/a.md")) == "docs/a.md"


def test_a_missing_file_is_reported_with_similar_paths(folder):
    search = FileSearch([folder])
    with pytest.raises(ToolFailed) as raised:
        search.read_file("dosc/a.md")
    assert str(raised.value) == "There is no 'dosc/a.md'. Did you mean docs/a.md?"
    with pytest.raises(ToolFailed) as raised:
        search.file_search("x", root_dir="notes")
    assert str(raised.value) == "There is no 'notes'. There are: docs."


def test_several_roots_are_distinguished_by_name(folder, tmp_path):
    (tmp_path / "other" / "data").mkdir(parents=True)
    (tmp_path / "other" / "data" / "b.md").write_text("hello\n")
    search = FileSearch([folder, tmp_path / "other" / "data"])
    assert search.file_search("hello")["files"] == ["data/docs/a.md", "data-2/b.md"]
    assert search.read_file("data-2/b.md")["text"] == "hello"


def test_a_root_that_is_itself_a_link_is_its_target(folder, tmp_path):
    (tmp_path / "entry").symlink_to(folder)
    search = FileSearch([tmp_path / "entry"])
    assert search.read_file("docs/a.md")["text"] == "hello"
    assert search.read_file(str(tmp_path / "entry" / "docs" / "a.md"))["text"] == "hello"


def test_a_root_must_be_a_folder(tmp_path):
    with pytest.raises(BadInput, match="is not an existing folder"):
        AllowedRoots([tmp_path / "missing"])
    with pytest.raises(BadInput, match="at least one"):
        AllowedRoots([])


def test_text_that_is_not_a_path_is_reported_for_its_field(folder):
    with pytest.raises(InvalidArguments) as raised:
        AllowedRoots([folder]).find(" ", "root_dir")
    assert raised.value.problems[0].field == "root_dir"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_reported(folder):
    (folder / "docs" / "a.md").chmod(0)
    with pytest.raises(ToolFailed, match="cannot be read: Permission denied"):
        FileSearch([folder]).read_file("docs/a.md")


def test_no_descriptor_is_left_open(folder):
    search = FileSearch([folder])
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(20):
        search.file_search("hello")
        search.read_file("docs/a.md")
        with pytest.raises(ToolError):
            search.read_file("up/secret.txt")
    assert len(list(Path("/dev/fd").iterdir())) == before


PROTECTED = (".env", ".netrc", ".ssh/config", "docs/.htpasswd", "server.pem", "docs/TLS.KEY", "keys/id_rsa", "a.kdbx")


@pytest.fixture
def project(folder):
    """The folder with hidden files and key stores, and a hidden folder of workflows."""
    for path in (*PROTECTED, ".github/ci.yml"):
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(SECRET)
    return folder


@pytest.mark.parametrize("path", [*PROTECTED, "./.env", "docs/../.env", ".ssh/../.ssh/config", ".git/no such file"])
def test_hidden_files_and_key_stores_are_refused(project, path):
    for name in (path, str(project / path)):
        with pytest.raises(ToolRefused, match="is hidden or may hold keys, so tools may not use it"):
            FileSearch([project]).read_file(name)
    with pytest.raises(ToolRefused):
        AllowedRoots([project]).resolve_new_path(path)
    with pytest.raises(ToolRefused):
        FileSearch([project]).file_search("a", root_dir=path)


def test_hidden_files_are_refused_by_a_path_that_leads_up_from_the_working_folder(project, monkeypatch):
    monkeypatch.chdir(project / "docs")
    for path in ("../.env", "../server.pem", "../.ssh/config"):
        with pytest.raises(ToolRefused, match="is hidden or may hold keys, so tools may not use it"):
            FileSearch([project]).read_file(path)
        with pytest.raises(ToolRefused):
            AllowedRoots([project]).resolve_new_path(path)


def test_hidden_files_and_key_stores_are_not_found_by_a_search(project):
    result = FileSearch([project]).file_search(SECRET)
    assert result["total_matches"] == 0
    with pytest.raises(ToolFailed):
        FileSearch([project]).read_file("id_rsa.txt")


def test_a_hidden_folder_can_be_read_if_it_is_a_root_itself(project):
    files = FileSearch([project, project / ".github"])
    for path in (".github/ci.yml", "ci.yml", str(project / ".github" / "ci.yml")):
        assert SECRET in str(files.read_file(path))
    with pytest.raises(ToolRefused):
        files.read_file(".env")
