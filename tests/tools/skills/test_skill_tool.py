"""Skills are found, described, read and run; what is bad is set aside with a reason."""

import asyncio
import json
import os
import tempfile
import threading
import time

import pytest

from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import BadInput, InvalidArguments, ToolFailed, ToolRefused
from opposable.domain.specs import SkillSpec
from opposable.safety.sandbox.limits import SandboxLimits
from opposable.safety.sandbox.sandbox import Sandbox
from opposable.tools.library import ToolLibrary
from opposable.tools.skills.folder import SkillFolder
from opposable.tools.skills.loader import load_skill, scan_skills
from opposable.tools.skills.skill_tool import create_skill_tools, tools_from_skill_spec

pytestmark = pytest.mark.anyio

REPORT = """---
name: weekly-report
description: Write the weekly report in the house style.
version: 2.1
license: MIT
allowed-tools: file_search calculator
metadata:
  author: Mara
---
# Weekly report

Read references/style.md first.
"""
WORDS = '''"""Count the words of a text.

More about it.
"""
import json, sys
given = json.load(sys.stdin)
print(json.dumps({"words": len(given["text"].split()), "text": given["text"]}, ensure_ascii=False))
'''


@pytest.fixture
def sandbox():
    return Sandbox(SandboxLimits(seconds=5, cpu_seconds=2, output_bytes=10_000))


def write_skill(root, name, files):
    folder = root / name
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def load_actions(folder, sandbox):
    return {tool.tool_id: tool for tool in create_skill_tools(load_skill(folder), sandbox)}


async def test_a_skill_without_scripts_has_tools_for_its_instructions_and_files(tmp_path, sandbox):
    folder = write_skill(tmp_path, "report", {"SKILL.md": REPORT, "references/style.md": "Short sentences."})
    tools = load_actions(folder, sandbox)
    assert list(tools) == ["weekly-report", "weekly-report.read"]
    assert tools["weekly-report"].definition.description == "Write the weekly report in the house style."
    assert await tools["weekly-report"].run({"question": "how?"}, NO_CONTEXT) == {
        "skill": "weekly-report",
        "instructions": "# Weekly report\n\nRead references/style.md first.",
        "files": ["references/style.md"],
    }
    assert await tools["weekly-report.read"].run({"path": "references/style.md"}, NO_CONTEXT) == {
        "path": "references/style.md",
        "text": "Short sentences.",
    }
    manifest = load_skill(folder).manifest
    assert (manifest.version, manifest.allowed_tools, manifest.metadata) == (
        "2.1",
        ("file_search", "calculator"),
        {"author": "Mara"},
    )


async def test_instructions_are_read_when_they_are_used(tmp_path, sandbox):
    folder = write_skill(tmp_path, "report", {"SKILL.md": REPORT})
    tools = load_actions(folder, sandbox)
    (folder / "SKILL.md").write_text(REPORT.replace("Read references/style.md first.", "Newer."))
    assert (await tools["weekly-report"].run({}, NO_CONTEXT))["instructions"] == "# Weekly report\n\nNewer."


async def test_a_chinese_skill_is_called_through_the_library(tmp_path, sandbox):
    text = "---\nname: 周报\ndescription: 按公司格式撰写周报\n---\n先看数据，再写结论。\n"
    folder = write_skill(tmp_path, "周报", {"SKILL.md": text, "scripts/统计.py": WORDS})
    library = ToolLibrary(create_skill_tools(load_skill(folder), sandbox))
    result = await library.call("周报", {})
    assert result.data["instructions"] == "先看数据，再写结论。"
    assert result.data["files"] == ["scripts/统计.py"]
    counted = await library.call("周报.统计", {"input": '{"text": "你好 世界"}'})
    assert counted.data == {"words": 2, "text": "你好 世界"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030"])
def test_documents_in_other_encodings_are_read(tmp_path, encoding):
    text = "---\nname: 天气\ndescription: 查询天气的步骤说明文档\n---\n正文内容在这里\n"
    assert (
        load_skill(write_skill(tmp_path, "w", {"SKILL.md": text.encode(encoding)})).description
        == "查询天气的步骤说明文档"
    )


def test_long_chinese_instructions_are_read_to_their_end(tmp_path):
    text = "---\nname: 长\ndescription: 长文档\n---\n" + "先看数据，再写结论。\n" * 10_000 + "完"
    instructions = load_skill(write_skill(tmp_path, "x", {"SKILL.md": text})).read_instructions()
    assert len(instructions) == 110_001
    assert instructions.endswith("完")


def test_front_matter_may_follow_empty_lines(tmp_path):
    folder = write_skill(tmp_path, "x", {"SKILL.md": "\ufeff\n\r\n---\nname: y\ndescription: Y.\n---\nBody.\n"})
    skill = load_skill(folder)
    assert (skill.skill_id, skill.description, skill.read_instructions()) == ("y", "Y.", "Body.")
    write_skill(tmp_path, "x", {"SKILL.md": "\n\n---\nname: y\ndescription: a: b\n---\n"})
    with pytest.raises(BadInput, match="not valid YAML in line 5"):
        load_skill(folder)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("#!/usr/bin/env bash\na=(1 2)\necho ${a[1]}\n", "2"),
        ("#!/bin/bash -e\nfalse || echo ${BASH_VERSION:+bash}\n", "bash"),
        ("#!/bin/sh\r\necho hello\r\nexit 0\r\n", "hello"),
        ("#!/usr/bin/env no-such-shell\necho hello\n", "hello"),
        ("\nX=1\necho $X\n", "1"),
    ],
)
async def test_a_script_runs_in_the_shell_that_it_names(tmp_path, sandbox, script, output):
    library = ToolLibrary(
        create_skill_tools(load_skill(write_skill(tmp_path, "x", {"SKILL.md": BODY, "scripts/a.sh": script})), sandbox)
    )
    result = await library.call(f"{load_skill(tmp_path / 'x').skill_id}.a", {})
    assert (result.failure, result.data) == (None, output)


async def test_options_of_the_first_line_of_a_script_hold(tmp_path, sandbox):
    folder = write_skill(tmp_path, "x", {"SKILL.md": BODY, "scripts/a.sh": "#!/bin/sh -e\nfalse\necho done\n"})
    library = ToolLibrary(create_skill_tools(load_skill(folder), sandbox))
    assert "exit code 1" in (await library.call(f"{load_skill(folder).skill_id}.a", {})).content


@pytest.mark.parametrize("path", ["scripts/a.sh", "scripts/a.py"])
async def test_a_script_that_was_deleted_is_reported(tmp_path, sandbox, path):
    skill = load_skill(write_skill(tmp_path, "x", {"SKILL.md": BODY, path: ""}))
    library = ToolLibrary(create_skill_tools(skill, sandbox))
    (tmp_path / "x" / path).unlink()
    result = await library.call(f"{skill.skill_id}.a", {})
    assert (result.failure, result.content) == (
        "failed",
        f"{path} of the skill {skill.skill_id} was deleted, or is a link.",
    )


def test_a_link_to_a_skill_is_rejected_with_the_reason(tmp_path):
    write_skill(tmp_path / "elsewhere", "x", {"SKILL.md": BODY})
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/x").symlink_to(tmp_path / "elsewhere/x")
    (tmp_path / "skills/all").symlink_to(tmp_path / "elsewhere")
    scan = scan_skills([tmp_path / "skills"])
    reason = "x is not a usable skill: it is a link; links are not followed."
    assert (scan.skills, scan.rejected_folders) == ((), {str(tmp_path / "skills/x"): reason})


def test_a_version_may_be_a_date(tmp_path):
    text = "---\nname: x\ndescription: X.\nversion: 2025-11-15\n---\n"
    assert load_skill(write_skill(tmp_path, "x", {"SKILL.md": text})).manifest.version == "2025-11-15"


async def test_a_script_may_start_a_program_of_its_skill(tmp_path, sandbox):
    files = {"SKILL.md": BODY, "scripts/run.sh": "/skill/lib/helper.sh", "lib/helper.sh": "#!/bin/sh\necho helped\n"}
    folder = write_skill(tmp_path, "x", files)
    (folder / "lib/helper.sh").chmod(0o755)
    library = ToolLibrary(create_skill_tools(load_skill(folder), sandbox))
    assert (await library.call("x.run", {})).content == "helped"


BODY = "# Title\n\nThe document says this.\n\nMore.\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"SKILL.md": f"---\ndescription: manifest\n---\n{BODY}", "scripts/run.py": WORDS}, "manifest"),
        ({"SKILL.md": f"---\nname: x\n---\n{BODY}", "scripts/run.py": WORDS}, "Count the words of a text."),
        ({"SKILL.md": BODY, "scripts/run.sh": "#!/bin/sh\n# Count in a shell.\nwc -w\n"}, "Count in a shell."),
        ({"SKILL.md": BODY, "scripts/run.py": "print(1)"}, "The document says this."),
        ({"SKILL.md": BODY}, "The document says this."),
        ({"SKILL.md": BODY, "skill.json": '{"description": "from JSON"}'}, "from JSON"),
    ],
)
def test_the_manifest_describes_before_the_docstring_before_the_document(tmp_path, files, expected):
    assert load_skill(write_skill(tmp_path, "x", files)).description == expected


async def test_a_skill_that_is_one_script_is_run_by_its_name(tmp_path, sandbox):
    manifest = {
        "id": "word_count",
        "description": "Count words.",
        "script": "count.py",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    folder = write_skill(tmp_path, "wc", {"skill.json": json.dumps(manifest), "count.py": WORDS})
    tools = load_actions(folder, sandbox)
    assert list(tools) == ["word_count"]
    assert await tools["word_count"].run({"text": "a b c"}, NO_CONTEXT) == {"words": 3, "text": "a b c"}
    with pytest.raises(InvalidArguments, match="text: is required"):
        tools["word_count"].check({})


ARGV = """---
name: args
description: Shows its arguments.
scripts:
  - path: tools/show.py
    name: show
    description: Show what was given.
    arguments: argv
    parameters:
      type: object
      properties:
        city: {type: string}
        max_words: {type: integer}
        deep: {type: boolean}
        verbose: {type: boolean, default: true}
        ids: {type: array}
---
Body.
"""
SHOW = """import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--city")
parser.add_argument("--max-words", type=int)
parser.add_argument("--deep", action="store_true")
parser.add_argument("--verbose", default="true")
parser.add_argument("--ids", action="append")
print(json.dumps(vars(parser.parse_args())))
"""


async def test_declared_arguments_reach_a_script_as_options(tmp_path, sandbox):
    folder = write_skill(tmp_path, "a", {"SKILL.md": ARGV, "tools/show.py": SHOW})
    show = load_actions(folder, sandbox)["args.show"]
    given = {"city": "--help 上海; rm", "max_words": 3, "deep": True, "verbose": False, "ids": ["1", "-2", "--deep"]}
    assert await show.run(given, NO_CONTEXT) == {**given, "verbose": "false"}
    given = {"city": None, "deep": False, "ids": []}
    assert await show.run(given, NO_CONTEXT) == {**given, "ids": None, "max_words": None, "verbose": "true"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("print('plain text')", "plain text"),
        ("print('[1, 2]')", [1, 2]),
        ("print('1.10')", "1.10"),
        ("print('    a\\n  b')", "    a\n  b"),
        ("pass", "It ran and wrote nothing."),
        ("import sys; print(sys.argv[1:], sys.stdin.read())", "['-v'] in"),
        ("print(open('/skill/data.txt').read())", "beside"),
    ],
)
async def test_output_is_a_value_or_text(tmp_path, sandbox, script, expected):
    folder = write_skill(tmp_path, "x", {"SKILL.md": BODY, "scripts/go.py": script, "data.txt": "beside"})
    assert await load_actions(folder, sandbox)["x.go"].run({"arguments": ["-v"], "input": "in"}, NO_CONTEXT) == expected


@pytest.mark.parametrize(
    ("script", "failure", "said"),
    [
        ("raise ValueError('bad 日期')", "failed", "exit code 1: ValueError: bad 日期"),
        (
            "def f(n):\n    if n:\n        return f(n - 1) if n % 2 else g(n - 1)\n    raise ValueError('deep')\n"
            "def g(n):\n    return f(n)\nf(60)",
            "failed",
            "exit code 1: ValueError: deep",
        ),
        (
            "import sys\nsys.stderr.write('2 rows skipped\\n')\nraise ValueError('no such city. Try:\\n  北京\\n上海')",
            "failed",
            "exit code 1: 2 rows skipped\nValueError: no such city. Try:\n  北京\n上海",
        ),
        ("import sys; sys.exit('no such city')", "failed", "exit code 1: no such city"),
        ("while True: pass", "timeout", "took too long"),
        ("print('x' * 10**6)", "failed", "wrote more than it may"),
        ("open('/skill/SKILL.md', 'w')", "failed", "Read-only file system"),
        ("open('/etc/passwd')", "failed", "No such file"),
        ("import socket; socket.create_connection(('1.1.1.1', 80), 1)", "failed", "unreachable"),
    ],
)
async def test_a_script_that_fails_says_so_in_a_sentence(tmp_path, sandbox, script, failure, said):
    folder = write_skill(tmp_path, "x", {"SKILL.md": BODY, "scripts/go.py": script})
    result = await ToolLibrary(create_skill_tools(load_skill(folder), sandbox)).call("x.go", {})
    assert result.failure == failure
    assert said in result.content
    assert "Traceback" not in result.content


async def test_a_script_that_fails_has_its_whole_output(tmp_path, sandbox):
    script = "import sys\nprint('\\n'.join(f'line {n} is too long' for n in range(200)))\nsys.stderr.write('old version')\nsys.exit(1)"
    folder = write_skill(tmp_path, "x", {"SKILL.md": BODY, "scripts/go.py": script})
    result = await ToolLibrary(create_skill_tools(load_skill(folder), sandbox)).call("x.go", {})
    lines = [f"line {n} is too long" for n in range(200)]
    assert result.content == "\n".join(["x.go ended with exit code 1: line 0 is too long", *lines[1:], "old version"])


async def test_reading_stays_inside_the_folder(tmp_path, sandbox):
    (tmp_path / "secret.txt").write_text("secret")
    folder = write_skill(tmp_path, "x", {"SKILL.md": BODY, "a.md": "inside"})
    (folder / "link.md").symlink_to(tmp_path / "secret.txt")
    read = load_actions(folder, sandbox)["x.read"]
    for path in ("../secret.txt", "/etc/passwd", "link.md", "~/x"):
        with pytest.raises(ToolRefused):
            await read.run({"path": path}, NO_CONTEXT)
    with pytest.raises(ToolFailed, match=r"Did you mean|There are"):
        await read.run({"path": "b.md"}, NO_CONTEXT)


async def test_a_long_file_is_read_in_pages(tmp_path, sandbox):
    folder = write_skill(tmp_path, "x", {"SKILL.md": BODY, "long.md": "字" * 20_000})
    read = load_actions(folder, sandbox)["x.read"]
    first = await read.run({"path": "long.md"}, NO_CONTEXT)
    assert first["more"] == "The file has 20,000 characters; read on with offset=15000."
    assert await read.run({"path": "long.md", "offset": 15_000}, NO_CONTEXT) == {"path": "long.md", "text": "字" * 5000}


INVALID_SKILLS = [
    ({"SKILL.md": "---\nname: x\nno end"}, "does not end"),
    ({"SKILL.md": "---\nname: [x\n---\nbody"}, "not valid YAML in line"),
    ({"SKILL.md": "---\n- a\n- b\n---\nbody"}, "must be fields and values"),
    ({"SKILL.md": "---\na: &a [x]\nb: [*a, *a]\n---\nbody"}, "aliases"),
    ({"SKILL.md": "---\nname: x\nscripts: [{path: ../evil.py}]\n---\nb"}, "inside the skill's folder"),
    ({"SKILL.md": "---\nname: x\nscript: ../evil.py\n---\nb"}, "script: must be a path inside"),
    ({"SKILL.md": "---\nname: x\nscripts: [scripts/none.py]\n---\nb"}, "does not exist"),
    ({"SKILL.md": "---\nname: '!!!'\n---\nbody"}, "is not a valid name"),
    ({"SKILL.md": "---\nname: x\n---\n# Only a title\n"}, "it has no description"),
    ({"SKILL.md": b"\0\1\2"}, "is not a text file"),
    ({"SKILL.md": "x" * 300_000}, "longer than"),
    ({"SKILL.md": "中" * 200_001}, "longer than"),
    ({"SKILL.md": "---\nname: x\nname: y\n---\nbody"}, "in line 3: name is defined twice"),
    ({"SKILL.md": "body", "skill.json": '{"name": "x",\n"name": "y"}'}, "skill.json, line 2: name is defined twice"),
    ({"SKILL.md": "---\nname: x\nscripts: 5\n---\nbody"}, "scripts: must be a list"),
    ({"skill.json": "{nope"}, "not valid JSON"),
    ({"README.md": "x"}, "it has no SKILL.md"),
]


@pytest.mark.parametrize(("files", "reason"), INVALID_SKILLS, ids=[reason for _, reason in INVALID_SKILLS])
def test_an_invalid_skill_is_rejected_with_the_reason(tmp_path, files, reason):
    with pytest.raises(BadInput, match=reason):
        load_skill(write_skill(tmp_path, "bad", files))


def test_a_scan_returns_valid_skills_and_rejects_invalid_ones(tmp_path):
    write_skill(tmp_path, "skills/a", {"SKILL.md": REPORT})
    write_skill(tmp_path, "skills/deep/b", {"SKILL.md": "---\nname: b\ndescription: B.\n---\n"})
    bad = write_skill(tmp_path, "skills/c", {"SKILL.md": "---\nname: [\n---\n"})
    again = write_skill(tmp_path, "skills/z", {"SKILL.md": REPORT})
    linked = write_skill(tmp_path, "skills/linked", {"x.txt": ""})
    (linked / "SKILL.md").symlink_to(tmp_path / "skills/a/SKILL.md")
    (tmp_path / "skills" / "up").symlink_to(tmp_path)
    scan = scan_skills([tmp_path / "skills", tmp_path / "none"])
    assert [skill.skill_id for skill in scan.skills] == ["weekly-report", "b"]
    assert set(scan.rejected_folders) == {str(bad), str(again), str(linked)}
    assert scan.rejected_folders[str(linked)] == "linked is not a usable skill: its SKILL.md is a link."


def test_a_folder_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    write_skill(tmp_path, "skills/b", {"SKILL.md": BODY})
    closed = write_skill(tmp_path, "skills/a/closed", {"SKILL.md": BODY}).parent
    closed.chmod(0)
    readable = os.access(closed, os.R_OK)  # an administrator reads everything
    scan = scan_skills([tmp_path / "skills"])
    closed.chmod(0o700)
    assert [skill.skill_id for skill in scan.skills] == (["closed", "b"] if readable else ["b"])
    assert ("cannot be read" in scan.rejected_folders.get(str(closed), "")) is not readable


def test_links_and_what_cannot_run_are_left_out_with_a_reason(tmp_path):
    folder = write_skill(
        tmp_path, "x", {"SKILL.md": BODY, "scripts/a.py": "1", "scripts/a.sh": "", "scripts/b.rb": "1"}
    )
    (folder / "big.bin").write_bytes(b"x" * 10_000_001)
    skill = load_skill(folder)
    assert dict(skill.skipped_files) == {
        "big.bin": "it is larger than 10 MB.",
        "scripts/a.sh": "scripts/a.py has the same name. Rename one of them.",
        "scripts/b.rb": "only .py and .sh scripts can be run.",
    }
    assert [script.name for script in skill.scripts] == ["a"]


async def test_a_skill_with_a_script_named_read_can_be_read(tmp_path, sandbox):
    folder = write_skill(tmp_path, "x", {"SKILL.md": BODY, "a.md": "Notes.", "scripts/read.py": "print('script')"})
    library = ToolLibrary(create_skill_tools(load_skill(folder), sandbox))
    assert library.names == ("x", "x_read", "x_read_file")
    assert (await library.call("x.read", {})).content == "script"
    assert (await library.call("x.read_file", {"path": "a.md"})).data["text"] == "Notes."


async def test_a_spec_replaces_the_name_and_description_of_the_skill(tmp_path, sandbox):
    folder = write_skill(tmp_path, "report", {"SKILL.md": REPORT})
    [tool] = tools_from_skill_spec(SkillSpec(tool_id="report", path=folder, description="Mine.", timeout=5), sandbox)
    assert (tool.tool_id, tool.definition.description, tool.timeout) == ("report", "Mine.", 5)


async def test_a_call_that_is_cancelled_while_it_is_prepared_leaves_no_folder(tmp_path, sandbox, monkeypatch):
    folder = write_skill(tmp_path, "slow", {"SKILL.md": "---\ndescription: Slow.\n---\n", "scripts/go.py": "print(1)"})
    actions = load_actions(folder, sandbox)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    started, copy_to = threading.Event(), SkillFolder.copy_to

    def copy_slowly(self, target):
        started.set()
        time.sleep(0.3)
        copy_to(self, target)

    monkeypatch.setattr(SkillFolder, "copy_to", copy_slowly)
    call = asyncio.create_task(actions["slow.go"].run({}, NO_CONTEXT))
    await asyncio.to_thread(started.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.sleep(0.5)
    assert list(temporary.iterdir()) == []
