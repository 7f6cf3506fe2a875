"""Test data: every call format, as a function from calls to text."""

import json
from collections.abc import Callable
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]
ANT = "antml:"


def tool(name: str, properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required or []}
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}


TEXT = {"type": "string"}
TOOLS = [
    tool("get_weather", {"city": TEXT, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, ["city"]),
    tool("add", {"a": {"type": "integer"}, "b": {"type": "integer"}}, ["a", "b"]),
    tool("write_file", {"path": TEXT, "content": TEXT}, ["path", "content"]),
    tool("set_light", {"on": {"type": "boolean"}, "level": {"type": "number"}, "room": TEXT}, ["on"]),
    tool("plan", {"steps": {"type": "array", "items": TEXT}, "meta": {"type": "object"}}, ["steps"]),
    tool("list_tables", {}),
]
CALLS: dict[str, Calls] = {
    "one word": [("get_weather", {"city": "Paris"})],
    "Chinese": [("get_weather", {"city": "上海", "unit": "celsius"})],
    "numbers": [("add", {"a": 2, "b": -30})],
    "types": [("set_light", {"on": True, "level": 0.5, "room": "007"})],
    "words that look like values": [("write_file", {"path": "null", "content": "true"})],
    "text that looks like JSON": [("write_file", {"path": "a.json", "content": '{"a": [1, 2]}'})],
    "nested": [("plan", {"steps": ["buy milk", "走路"], "meta": {"by": "Ann", "deep": {"n": [1, 2.5, None, False]}}})],
    "no arguments": [("list_tables", {})],
    "lines": [("write_file", {"path": "a.py", "content": 'def f(x):\n    return f"{x}"\n\nprint(f(1))'})],
    "markup": [("write_file", {"path": "i.html", "content": "<p>a < b && c > d</p> <parameter> </p>"})],
    "two": [("get_weather", {"city": "Paris"}), ("add", {"a": 1, "b": 2})],
    "three with one twice": [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}), ("list_tables", {})],
}


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def raw(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def each(one: Callable[[str, dict[str, Any]], str], joint: str = "\n") -> Callable[[Calls], str]:
    return lambda calls: joint.join(one(name, arguments) for name, arguments in calls)


def named(calls: Calls, key: str = "arguments") -> list[dict[str, Any]]:
    return [{"name": name, key: arguments} for name, arguments in calls]


def in_tags(
    opening: str, closing: str, one: Callable[[str, dict[str, Any]], str], joint: str = "\n"
) -> Callable[[Calls], str]:
    return lambda calls: f"{opening}{each(one, joint)(calls)}{closing}"


def qwen_xml(name: str, arguments: dict[str, Any]) -> str:
    values = "".join(f"<parameter={key}>\n{raw(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<function={name}>\n{values}</function>"


def seed_oss(name: str, arguments: dict[str, Any]) -> str:
    values = "".join(f"<parameter={key}>{raw(value)}</parameter>\n" for key, value in arguments.items())
    return f"<seed:tool_call>\n<function={name}>\n{values}</function>\n</seed:tool_call>"


def glm(name: str, arguments: dict[str, Any], line: str = "\n") -> str:
    values = "".join(f"<arg_key>{k}</arg_key>{line}<arg_value>{raw(v)}</arg_value>{line}" for k, v in arguments.items())
    return f"<tool_call>{name}{line}{values}</tool_call>"


def hunyuan(name: str, arguments: dict[str, Any]) -> str:
    values = "".join(f"<arg_key>{k}</arg_key><arg_value>{raw(v)}</arg_value>" for k, v in arguments.items())
    return f"<tool_call>{name}<tool_sep>{values}</tool_call>"


def invoke(prefix: str = "") -> Callable[[str, dict[str, Any]], str]:
    def one(name: str, arguments: dict[str, Any]) -> str:
        values = "".join(f'<{prefix}parameter name="{k}">{raw(v)}</{prefix}parameter>\n' for k, v in arguments.items())
        return f'<{prefix}invoke name="{name}">\n{values}</{prefix}invoke>'

    return one


def dsml(name: str, arguments: dict[str, Any]) -> str:
    values = "".join(
        f'<｜DSML｜parameter name="{k}" parse_string="{str(isinstance(v, str)).lower()}">{raw(v)}</｜DSML｜parameter>\n'
        for k, v in arguments.items()
    )
    return f'<｜DSML｜invoke name="{name}">\n{values}</｜DSML｜invoke>\n'


def minicpm(name: str, arguments: dict[str, Any]) -> str:
    values = "".join(f'<param name="{k}"><![CDATA[{raw(v)}]]></param>' for k, v in arguments.items())
    return f'<function name="{name}">{values}</function>'


M3 = "]<]minimax[>["


def m3_value(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"{M3}<{key}>{m3_value(item)}{M3}</{key}>" for key, item in value.items())
    if isinstance(value, list):
        return "".join(f"{M3}<item>{m3_value(item)}{M3}</item>" for item in value)
    return raw(value)


def minimax_m3(name: str, arguments: dict[str, Any]) -> str:
    return f'{M3}<invoke name="{name}">{m3_value(arguments)}{M3}</invoke>\n'


def kimi_k2(calls: Calls) -> str:
    written = (
        f"<|tool_call_begin|>functions.{name}:{i}<|tool_call_argument_begin|>{dumps(arguments)}<|tool_call_end|>"
        for i, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{''.join(written)}<|tool_calls_section_end|>"


def kimi_k3(calls: Calls) -> str:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
    written = ""
    for i, (name, arguments) in enumerate(calls, 1):
        values = "".join(
            f'<|open|>argument key="{k}" type="{kinds[type(v)]}"<|sep|>{raw(v)}<|close|>argument<|sep|>'
            for k, v in arguments.items()
        )
        written += f'<|open|>call tool="{name}" index="{i}"<|sep|>{values}<|close|>call<|sep|>'
    return f"<|open|>tools<|sep|>{written}<|close|>tools<|sep|><|close|>message<|sep|>"


def deepseek_v3(name: str, arguments: dict[str, Any]) -> str:
    return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{dumps(arguments)}\n```<｜tool▁call▁end｜>"


def deepseek_v31(name: str, arguments: dict[str, Any]) -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{dumps(arguments)}<｜tool▁call▁end｜>"


def step3(name: str, arguments: dict[str, Any]) -> str:
    written = invoke("steptml:")(name, arguments)
    return f"<｜tool_call_begin｜>function<｜tool_sep｜>{written}<｜tool_call_end｜>"


def python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def gemma(value: Any, mark: str) -> str:
    if isinstance(value, str):
        return f"{mark}{value}{mark}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{gemma(item, mark)}" for key, item in value.items()) + "}"
    return f"[{','.join(gemma(item, mark) for item in value)}]" if isinstance(value, list) else dumps(value)


def harmony(calls: Calls) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{dumps(arguments)}<|call|>"
        for name, arguments in calls
    )


def harmony_role(calls: Calls) -> str:
    return "<|start|>assistant".join(
        f" to=functions.{name}<|channel|>commentary<|message|>{dumps(arguments)}<|end|>" for name, arguments in calls
    )


def openai(calls: Calls) -> str:
    written = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": dumps(arguments)}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return dumps({"tool_calls": written})


def seed(calls: Calls) -> str:
    return json.dumps(
        {"reasoning": "需要", "action": "tool_call", "tool_calls": named(calls)}, ensure_ascii=False, indent=2
    )


def react(name: str, arguments: dict[str, Any]) -> str:
    return f"Thought: I need it.\nAction: {name}\nAction Input: {dumps(arguments)}"


def mistral(calls: Calls) -> str:
    return "[TOOL_CALLS]" + dumps([{**call, "id": f"12345678{i}"} for i, call in enumerate(named(calls))])


def one_json(name: str, arguments: dict[str, Any]) -> str:
    return dumps({"name": name, "arguments": arguments})


FORMS: dict[str, Callable[[Calls], str]] = {
    "hermes": each(lambda n, a: f"<tool_call>\n{one_json(n, a)}\n</tool_call>"),
    "hermes, close together": each(lambda n, a: f"<tool_call>{one_json(n, a)}</tool_call>", ""),
    "hermes, last one not closed": lambda calls: FORMS["hermes"](calls).removesuffix("\n</tool_call>"),
    "hermes, list": lambda calls: f"<tool_call> {dumps(named(calls))}",
    "longcat": each(lambda n, a: f"<longcat_tool_call>{one_json(n, a)}</longcat_tool_call>"),
    "qwen xml": each(lambda n, a: f"<tool_call>\n{qwen_xml(n, a)}\n</tool_call>"),
    "qwen xml, opening tag missing": each(lambda n, a: f"{qwen_xml(n, a)}\n</tool_call>"),
    "seed oss": each(seed_oss),
    "llama 3": each(lambda n, a: dumps({"name": n, "parameters": a}), "; "),
    "llama 3, tag": lambda calls: "<|python_tag|>" + FORMS["llama 3"](calls),
    "llama 3.1, function tag": each(lambda n, a: f"<function={n}>{dumps(a)}</function>"),
    "functionary 3.2": each(lambda n, a: f">>>{n}\n{dumps(a)}", ""),
    "pythonic": lambda calls: f"[{each(python, ', ')(calls)}]",
    "llama 4": lambda calls: f"<|python_start|>{FORMS['pythonic'](calls)}<|python_end|>",
    "olmo 3": lambda calls: f"<function_calls>\n{each(python)(calls)}\n</function_calls>",
    "lfm 2": lambda calls: f"<|tool_call_start|>{FORMS['pythonic'](calls)}<|tool_call_end|>",
    "gemma 3": lambda calls: f"```tool_code\n{each(python)(calls)}\n```",
    "mistral": mistral,
    "mistral 11": each(lambda n, a: f"[TOOL_CALLS]{n}[ARGS]{dumps(a)}", ""),
    "mistral small 3.2": each(lambda n, a: f"[TOOL_CALLS]{n}[CALL_ID]abcdefgh1[ARGS]{dumps(a)}", ""),
    "deepseek 3": in_tags("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", deepseek_v3),
    "deepseek 3.1": in_tags("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", deepseek_v31, ""),
    "deepseek 3.2": in_tags("<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>", dsml, ""),
    "deepseek 4": in_tags("\n\n<｜DSML｜tool_calls>\n", "</｜DSML｜tool_calls>", dsml, ""),
    "kimi k2": kimi_k2,
    "kimi k3": kimi_k3,
    "glm 4.5": each(glm),
    "glm 4.7": each(lambda n, a: glm(n, a, ""), ""),
    "hunyuan 3": in_tags("<tool_calls>", "</tool_calls>", hunyuan, ""),
    "hunyuan a13b, jamba, apriel": lambda calls: f"<tool_calls>{dumps(named(calls))}</tool_calls>",
    "granite 3": lambda calls: f"<|tool_call|> {dumps(named(calls))}",
    "granite 20b": each(lambda n, a: f"<function_call> {one_json(n, a)}", " "),
    "phi 4 mini, firefunction": lambda calls: f" functools{dumps(named(calls))}",
    "function gemma": each(lambda n, a: f"<start_function_call>call:{n}{gemma(a, '<escape>')}<end_function_call>", ""),
    "gemma 4": each(lambda n, a: f"<|tool_call>call:{n}{gemma(a, '<|' + chr(34) + '|>')}<tool_call|>", ""),
    "harmony": harmony,
    "harmony, recipient in the role": harmony_role,
    "minimax m2": in_tags("<minimax:tool_call>\n", "\n</minimax:tool_call>", invoke()),
    "minimax m3": in_tags(f"{M3}<tool_call>\n", f"{M3}</tool_call>", minimax_m3, ""),
    "cohere": lambda calls: (
        "<|START_ACTION|>"
        + json.dumps(
            [{"tool_call_id": str(i), "tool_name": n, "parameters": a} for i, (n, a) in enumerate(calls)], indent=4
        )
        + "<|END_ACTION|>"
    ),
    "cohere r+": lambda calls: (
        "Action:\n```json\n" + dumps([{"tool_name": n, "parameters": a} for n, a in calls]) + "\n```"
    ),
    "step 3": in_tags("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", step3, ""),
    "minicpm": each(minicpm),
    "nemotron": lambda calls: f"<TOOLCALL>{dumps(named(calls))}</TOOLCALL>",
    "apertus": lambda calls: f"<|tools_prefix|>{dumps([{n: a} for n, a in calls])}<|tools_suffix|>",
    "internlm": each(lambda n, a: f"<|action_start|><|plugin|>{dumps({'name': n, 'parameters': a})}<|action_end|>"),
    "gigachat 3": each(lambda n, a: f"<|message_sep|>\n\nfunction call<|role_sep|>\n{one_json(n, a)}", ""),
    "gigachat 3.1": each(lambda n, a: f"<|function_call|>{one_json(n, a)}", ""),
    "xlam": lambda calls: dumps(named(calls)),
    "xlam, fenced": lambda calls: f"```json\n{dumps(named(calls))}\n```",
    "claude": in_tags("<function_calls>\n", "\n</function_calls>", invoke()),
    "claude, name space": in_tags(f"<{ANT}function_calls>\n", f"\n</{ANT}function_calls>", invoke(ANT)),
    "muse": in_tags("<atem:function_calls>\n", "\n</atem:function_calls>", invoke("atem:")),
    "react": each(react),
    "react, JSON": each(lambda n, a: f"Action:\n```json\n{dumps({'action': n, 'action_input': a})}\n```"),
    "seed": seed,
    "seed, fenced": lambda calls: f"```json\n{seed(calls)}\n```",
    "openai": openai,
    "bare JSON": each(one_json),
    "fenced JSON": each(lambda n, a: f"```json\n{one_json(n, a)}\n```"),
    "doubled braces": each(lambda n, a: one_json(n, a).replace("{", "{{").replace("}", "}}")),
    "doubled braces, fenced": lambda calls: f"```json\n{FORMS['doubled braces'](calls)}\n```",
    "tool request": each(lambda n, a: f"[TOOL_REQUEST]{one_json(n, a)}[END_TOOL_REQUEST]"),
    "anthropic": lambda calls: dumps(
        [{"type": "tool_use", "id": f"t{i}", "name": n, "input": a} for i, (n, a) in enumerate(calls)]
    ),
}


def solar(name: str, arguments: dict[str, Any]) -> str:
    values = "".join(f"<|tool_arg:start|>{k}<|tool_arg:value|>{raw(v)}<|tool_arg:end|>\n" for k, v in arguments.items())
    return f"<|tool_call:start|>{name}\n{values}<|tool_call:end|>"


def k2_horizon(name: str, arguments: dict[str, Any]) -> str:
    values = "".join(
        f"<ifm|arg_key>{k}</ifm|arg_key><ifm|arg_value>{raw(v)}</ifm|arg_value>" for k, v in arguments.items()
    )
    return f"<ifm|tool_call>{name}{values}</ifm|tool_call>"


PLAMO = "<|plamo:"


def plamo(name: str, arguments: dict[str, Any]) -> str:
    return (
        f"{PLAMO}begin_tool_request:plamo|>{PLAMO}begin_tool_name:plamo|>{name}{PLAMO}end_tool_name:plamo|>"
        f"{PLAMO}begin_tool_arguments:plamo|>{PLAMO}constrain|>json{PLAMO}msg|>{dumps(arguments)}"
        f"{PLAMO}end_tool_arguments:plamo|>{PLAMO}end_tool_request:plamo|>"
    )


def hunyuan_open(name: str, arguments: dict[str, Any]) -> str:
    parts = ("tool_call", "tool_sep", "arg_key", "arg_value")
    text = hunyuan(name, arguments)
    for part in parts:
        text = text.replace(f"{part}>", f"{part}:opensource>")
    return text


FORMS["longcat, keys"] = lambda calls: (
    FORMS["glm 4.5"](calls)
    .replace("tool_call>", "longcat_tool_call>")
    .replace("arg_key>", "longcat_arg_key>")
    .replace("arg_value>", "longcat_arg_value>")
)
FORMS["solar open 2"] = each(solar)
FORMS["k2 horizon"] = in_tags("<ifm|tool_calls>", "</ifm|tool_calls>", k2_horizon)
FORMS["k2 horizon, kinds told"] = lambda calls: FORMS["k2 horizon"](calls).replace(
    "</ifm|arg_key>", "</ifm|arg_key><ifm|arg_type>any</ifm|arg_type>"
)
FORMS["hunyuan, open weights"] = in_tags("<tool_calls:opensource>", "</tool_calls:opensource>", hunyuan_open)
FORMS["dots"] = in_tags("<dots_function_call>", "</dots_function_call>", invoke(), "")
FORMS["dots, JSON"] = each(lambda n, a: f"<dots_function_call>{one_json(n, a)}</dots_function_call>", "")
FORMS["minicpm, spaces lost"] = lambda calls: (
    FORMS["minicpm"](calls).replace("<function name", "<functionname").replace("<param name", "<paramĠname")
)
FORMS["inkling"] = each(
    lambda n, a: f"<|content_invoke_tool_json|>{dumps({'name': n, 'args': a})}<|end_message|>", "<|message_model|>"
)
FORMS["hyperclovax"] = lambda calls: f" -> tool/function_call\n{dumps(named(calls))}<|im_end|>"
FORMS["plamo 3"] = in_tags(f"{PLAMO}begin_tool_requests:plamo|>", f"{PLAMO}end_tool_requests:plamo|>", plamo, "")

CANNOT_SAY = {
    "doubled braces": {"text that looks like JSON", "lines"},  # the braces in strings are doubled too
    "doubled braces, fenced": {"text that looks like JSON", "lines"},
    "minimax m3": {"nested"},  # where the schema says nothing, bare text stays text
}
"""What a form has no way to write without changing it."""
