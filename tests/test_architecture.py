"""The structure of the code: lazy imports are declared, names are unique, tests mirror the source."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "opposable"
MODULES = sorted(SOURCE.rglob("*.py"))

NOT_MIRRORED = {
    "agent/test_whole_replies.py": "runs whose replies are not streamed",
    "ask/catalog/test_schema_selection.py": "which tables and columns of a large schema a catalog selects",
    "ask/intent/test_questions_for_the_model.py": "questions that have more than one reading",
    "ask/intent/test_questions.py": "business questions end to end on public databases",
    "ask/team/test_hostile_names.py": "hostile names of tables and columns, for the whole team",
    "ask/team/test_obeyed_attacks.py": "a model that obeys injected text, for the whole team",
    "ask/team/test_untrusted_cells.py": "hostile cells in answers, reports and the terminal",
    "builtin_tools/test_as_tools.py": "schemas and argument variants of all built-in tools",
    "durable/test_chats.py": "chats of a server with --durable, which a worker executes",
    "evals/agent_runs/test_held_out_scenarios.py": "evals/agent_runs of the repository",
    "evals/test_berkeley_ablation.py": "evals/berkeley_ablation.py of the repository",
    "evals/test_chinese_set.py": "evals/chinese of the repository",
    "harmless/test_agent.py": "expert traces through the agent",
    "harmless/test_answers.py": "answers to right SQL",
    "harmless/test_functions.py": "Python functions as tools",
    "harmless/test_gateway.py": "expert traces through the gateway",
    "harmless/test_http_tools.py": "HTTP endpoints as tools",
    "harmless/test_runs.py": "runs around their calls",
    "harmless/test_service.py": "expert traces through the service over HTTP",
    "harmless/test_service_values.py": "values and conversations in the service",
    "harmless/test_sql.py": "right SQL through the tool, the team and HTTP",
    "harmless/test_translation.py": "requests between APIs of different providers",
    "models/test_malformed_replies.py": "values of wrong types in replies, on every API",
    "parsers/test_forms.py": "every written form of a call",
    "parsers/test_leftover_markup.py": "markup without a call",
    "parsers/test_malformed_calls.py": "malformed calls in every form",
    "parsers/test_no_calls.py": "texts without a call",
    "parsers/test_role_headers.py": "headers of the model's own turn in a reply",
    "parsers/test_texts.py": "text around calls, streamed",
    "real/test_embedded_model.py": "the embedded model",
    "service/test_kill.py": "processes that are killed",
    "service/test_outage.py": "a database that is away",
    "service/test_replicas.py": "several processes on one store",
    "sql/test_attacks.py": "attacks on three engines",
    "sql/test_queries.py": "public queries on three engines",
    "sql/test_value_sizes.py": "estimates of the size of values, on two engines",
    "test_architecture.py": "the structure of the code",
    "test_deployment.py": "Dockerfile and compose.yaml",
    "test_docs.py": "README and docs",
    "test_examples.py": "the programs in examples/",
    "test_public_face.py": "the package's public names",
    "test_readme.py": "the commands of the README",
    "tools/http/openapi/test_real_documents.py": "published OpenAPI documents",
    "web/api/test_schemathesis.py": "generated requests to every route",
    "web/api/test_scopes.py": "the scope of every route",
    "web/console/test_chat.py": "the console's chat in a browser",
    "web/console/test_errors.py": "the console's errors in a browser",
    "web/console/test_pages.py": "the console's other pages in a browser",
    "web/console/test_session.py": "the console's sign-in in a browser",
    "web/gateway/test_clients.py": "public agent frameworks as clients, on a script",
    "web/gateway/test_clients_real.py": "public agent frameworks as clients, on the embedded model",
    "web/gateway/test_coding_agents.py": "the command lines of Claude Code and Codex as clients",
    "web/gateway/test_curl.py": "curl as a client",
    "web/gateway/test_fidelity.py": "unusual requests, replies and errors that are relayed, on every API",
    "web/gateway/test_fuzzed_bodies.py": "changed bodies, on every API",
    "web/gateway/test_litellm.py": "LiteLLM as a client, in an environment of its own",
    "web/gateway/test_openai_sdk.py": "the OpenAI SDK as a client",
    "web/mcp/test_conformance.py": "the MCP conformance suite",
    "web/middleware/test_api_keys.py": "API keys over HTTP",
}
"""Test files without a module of their name -> what they cover."""


def names(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_an_import_inside_a_function_is_declared_lazy(module):
    text = module.read_text()
    lines = text.splitlines()
    undeclared = [
        node.lineno
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom | ast.Import)
        and any(name.startswith("opposable") for name in imported_modules(node))
        and "# lazy:" not in lines[node.lineno - 1] + lines[node.lineno - 2]
    ]
    assert undeclared == [], "add a comment `# lazy: reason`, or import at the top"


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


def test_no_two_public_classes_have_one_name():
    defined = defaultdict(list)
    for module in MODULES:
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(names(module))
    assert len(defined) > 300
    assert {name: modules for name, modules in defined.items() if len(modules) > 1} == {}


def test_test_files_are_named_after_the_modules_they_test():
    found = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(found) > 100
    not_mirrored = {path for path in found if not (SOURCE / path.replace("test_", "")).is_file()}
    assert not_mirrored == NOT_MIRRORED.keys(), "name the file after the module, or say in NOT_MIRRORED what it covers"
