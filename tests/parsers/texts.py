"""Test data: replies of particular model families, with the expected calls, text and thinking."""


def _tool(name, properties, required=()):
    return {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": properties, "required": list(required)},
        },
    }


INTEGER = {"type": "integer"}
STRING = {"type": "string"}
TOOLS = [
    _tool("add_one", {"n": INTEGER}, ["n"]),
    _tool("opt", {"a": INTEGER, "b": INTEGER}, ["a"]),
    _tool("clock", {"town": STRING}, ["town"]),
    _tool("run_py", {"code": STRING}, ["code"]),
    _tool("page", {"markup": STRING}, ["markup"]),
    _tool("nothing", {}),
    {"name": "noschema", "parameters": {}},
    _tool("todo", {"todos": {"type": "array"}}, ["todos"]),
    _tool("conf", {"conf": {"type": "object"}}, ["conf"]),
    _tool("flag", {"on": {"type": "boolean"}}, ["on"]),
    _tool("price", {"x": {"type": "number"}}, ["x"]),
    _tool("nul", {"v": {"type": "null"}}, ["v"]),
    _tool("nstr", {"s": {"type": ["string", "null"]}}, ["s"]),
    _tool("uni", {"v": {"type": ["string", "object"]}, "m": {"type": ["string", "integer"]}}, ["v", "m"]),
    _tool("unit", {"u": {"enum": ["celsius", "kelvin"]}}, ["u"]),
    _tool("both", {"r1": STRING, "r2": INTEGER, "o1": STRING}, ["r1", "r2"]),
    _tool(
        "nest",
        {
            "tags": {"type": "array", "items": STRING},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"id": INTEGER, "label": STRING}}},
        },
        ["tags", "rows"],
    ),
    _tool(
        "alt",
        {
            "f": {"anyOf": [{"type": "array", "items": STRING}, {"type": "object", "properties": {"field": STRING}}]},
            "l": {"oneOf": [STRING, {"type": "object", "properties": {"text": STRING}}]},
            "lim": {"oneOf": [INTEGER, {"type": "object", "properties": {"max": INTEGER}, "required": ["max"]}]},
        },
    ),
    _tool(
        "Cal.create",
        {"title": STRING, "who": {"type": "array", "items": STRING}, "meta": {"type": "object"}},
        ["title"],
    ),
    _tool("cmd", {"command": STRING, "cwd": STRING, "timeout": INTEGER}, ["command"]),
]
P = "]<]minimax[>["


def m3(b):
    return f"<mm:think>Hm</mm:think>{P}<tool_call>\n{b}\n{P}</tool_call>"


K = "<|tool_call_begin|>functions.%s:%d<|tool_call_argument_begin|>%s"
atem = '<atem:function_calls>\n<atem:invoke name="add_one">\n<atem:parameter name="n">1</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
TEXTS = [
    ("<|channel|>commentary to=functions.nothing<|message|><|call|>", [("nothing", {})], "", ""),
    (K[:-2] % ("nothing", 0) + "<|tool_call_end|><|tool_calls_section_end|>", [("nothing", {})], "", ""),
    (K[:-2] % ("add_one", 0) + "<|tool_call_end|><|tool_calls_section_end|>", [], "", ""),
    (m3(f'{P}<invoke name="todo">{P}<todos>{P}</todos>{P}</invoke>'), [("todo", {"todos": []})], "", "Hm"),
    (m3(f'{P}<invoke name="conf">{P}<conf>{P}</conf>{P}</invoke>'), [("conf", {"conf": {}})], "", "Hm"),
    (' to=functions.add_one<|channel|>analysis<|message|>{"n": 1}', [("add_one", {"n": 1})], "", ""),
    ('<|channel|>analysis to=functions.add_one<|message|>{"n": 1}', [("add_one", {"n": 1})], "", ""),
    (' to=functions.add_one<|channel|>analysis <|constrain|>json<|message|>{"n": 1}', [("add_one", {"n": 1})], "", ""),
    (
        '<|channel|>analysis<|message|>Let us\nsee<|end|><|start|>assistant to=functions.add_one<|channel|>analysis<|message|>{"n": 1}',
        [("add_one", {"n": 1})],
        "",
        "Let us\nsee",
    ),
    (
        "<|channel|>analysis<|message|>Let us\nsee<|end|><|start|>assistant<|channel|>final<|message|>晚上好。\nAnything else?",
        [],
        "晚上好。\nAnything else?",
        "Let us\nsee",
    ),
    (
        "<|channel|>commentary to=assistant<|channel|>analysis<|message|>Let us\nsee<|end|><|start|>assistant<|channel|>final<|message|>Hello",
        [],
        "Hello",
        "Let us\nsee",
    ),
    (
        '<|channel|>analysis<|message|>run<|end|><|start|>assistant<|channel|>commentary to=python <|constrain|>code<|message|>print("hello")',
        [],
        "",
        "run",
    ),
    (
        '<|channel|> analysis<|message|> I think<|end|><|start|> assistant to=functions.add_one<|channel|> commentary <|constrain|>  json<|message|> {"n": 1}<|end|><|start|> assistant to=functions.add_one<|channel|> commentary <|constrain|>  json<|message|> {"n": 2}',
        [("add_one", {"n": 1}), ("add_one", {"n": 2})],
        "",
        "I think",
    ),
    (" to=user<|message|>晚上好。<|eot|>", [], "晚上好。", ""),
    (" to=add_one<|message|>" + atem, [("add_one", {"n": 1})], "", ""),
    (
        " to=user<|message|>Hi!<|eom|><|start|>assistant to=add_one<|message|>" + atem,
        [("add_one", {"n": 1})],
        "Hi!",
        "",
    ),
    (" to=user<|message|>You invoke it like this:\n" + atem + "<|eot|>", [], "You invoke it like this:\n" + atem, ""),
    (
        " to=self<|message|>I could use " + atem + " here<|eom|><|start|>assistant to=user<|message|>Hello!<|eot|>",
        [],
        "Hello!",
        "I could use " + atem + " here",
    ),
    (
        'Let us\nsee\n[BEGIN FINAL RESPONSE]\n<tool_calls>[{"name": "add_one", "arguments": {"n": 1}}]</tool_calls>',
        [("add_one", {"n": 1})],
        "",
        "Let us\nsee",
    ),
    (
        "<think>I need two<|tool_calls_section_begin|>"
        + K % ("add_one", 0, '{"n": 1}')
        + "<|tool_call_end|>"
        + K % ("run_py", 1, '{"code": "print(\'ho\')"}')
        + "<|tool_call_end|><|tool_calls_section_end|>",
        [("add_one", {"n": 1}), ("run_py", {"code": "print('ho')"})],
        "",
        "I need two",
    ),
    (
        "<think>I need two" + K % ("add_one", 0, '{"n": 1}') + K % ("run_py", 1, '{"code": "print(\'ho\')"}'),
        [("add_one", {"n": 1}), ("run_py", {"code": "print('ho')"})],
        "",
        "I need two",
    ),
    (
        K % ("cmd", 0, '{"command": "git status", "cwd": "/srv", "timeout": 10}'),
        [("cmd", {"command": "git status", "cwd": "/srv", "timeout": 10})],
        "",
        "",
    ),
    (
        m3(
            f'{P}<invoke name="nest">{P}<tags>{P}<item>red{P}</item>{P}<item>blue{P}</item>{P}</tags>{P}<rows>{P}<item>{P}<id>1{P}</id>{P}<label>one{P}</label>{P}</item>{P}</rows>{P}</invoke>'
        ),
        [("nest", {"tags": ["red", "blue"], "rows": [{"id": 1, "label": "one"}]})],
        "",
        "Hm",
    ),
    (
        m3(f'{P}<invoke name="alt">{P}<f>{P}<item>red{P}</item>{P}<item>blue{P}</item>{P}</f>{P}</invoke>'),
        [("alt", {"f": ["red", "blue"]})],
        "",
        "Hm",
    ),
    (m3(f'{P}<invoke name="alt">{P}<lim>5{P}</lim>{P}</invoke>'), [("alt", {"lim": 5})], "", "Hm"),
    (
        m3(f'{P}<invoke name="alt">{P}<lim>{P}<max>10{P}</max>{P}</lim>{P}</invoke>'),
        [("alt", {"lim": {"max": 10}})],
        "",
        "Hm",
    ),
    (
        m3(f'{P}<invoke name="alt">{P}<l>{P}<text>hi{P}</text>{P}</l>{P}</invoke>'),
        [("alt", {"l": f"{P}<text>hi{P}</text>"})],
        "",
        "Hm",
    ),
    (m3(f'{P}<invoke name="nothing">{P}</invoke>'), [("nothing", {})], "", "Hm"),
    (
        f'</mm:think>{P}<tool_call>\n{P}<invoke name="price">{P}<x>3.14{P}</x>{P}</invoke>\n{P}</tool_call>',
        [("price", {"x": 3.14})],
        "",
        "",
    ),
    (
        '<function name="page"><param name="markup"><![CDATA[<a href="/x">hi</a> </param>]]></param></function>',
        [("page", {"markup": '<a href="/x">hi</a> </param>'})],
        "",
        "",
    ),
    ('<function name="nothing"></function>', [("nothing", {})], "", ""),
    (
        '<function name="run_py"><param name="code">print(\'x\')</param></function>\n<function name="run_py"><param name="code">print(\'y\')</param></function>',
        [("run_py", {"code": "print('x')"}), ("run_py", {"code": "print('y')"})],
        "",
        "",
    ),
    (
        "check this\n</think>\n<tool_call>both\n<arg_key>r1</arg_key>\n<arg_value>contains </think> and <tool_call> strings</arg_value>\n<arg_key>r2</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        [("both", {"r1": "contains </think> and <tool_call> strings", "r2": 1})],
        "",
        "check this",
    ),
    (
        "I need to check first.\n<tool_call>clock\n<arg_key>town</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
        [("clock", {"town": "Paris"})],
        "I need to check first.",
        "",
    ),
    (
        "<tool_call>clock\n<arg_key>town</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>\nThe time has been checked.",
        [("clock", {"town": "Paris"})],
        "The time has been checked.",
        "",
    ),
    (
        "<tool_call>clock\n<arg_key>town</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call><|role_end|>",
        [("clock", {"town": "Paris"})],
        "",
        "",
    ),
    ("Let me read.</think><tool_call>nothing</tool_call>", [("nothing", {})], "", "Let me read."),
    (
        "</think>\n<tool_call>nstr\n<arg_key>s</arg_key>\n<arg_value>null</arg_value>\n</tool_call>",
        [("nstr", {"s": None})],
        "",
        "",
    ),
    (
        "</think>\n<tool_call>nstr\n<arg_key>s</arg_key>\n<arg_value>12 Elm Road</arg_value>\n</tool_call>",
        [("nstr", {"s": "12 Elm Road"})],
        "",
        "",
    ),
    (
        '<tool_call>uni\n<arg_key>v</arg_key>\n<arg_value>{"a": 1}</arg_value>\n<arg_key>m</arg_key>\n<arg_value>7</arg_value>\n</tool_call>',
        [("uni", {"v": {"a": 1}, "m": 7})],
        "",
        "",
    ),
    (
        "<tool_call>\n<function=uni>\n<parameter=v>\n{not valid json\n</parameter>\n<parameter=m>\n42\n</parameter>\n</function>\n</tool_call>",
        [("uni", {"v": "{not valid json", "m": 42})],
        "",
        "",
    ),
    (
        "<tool_call>\n<function=unit>\n<parameter=u>\ncelsius\n</parameter>\n</function>\n</tool_call>",
        [("unit", {"u": "celsius"})],
        "",
        "",
    ),
    (
        '<tool_call>\n<function=run_py>\n<parameter=code>\n    print("Hello")\n\n</parameter>\n</function>\n</tool_call>',
        [("run_py", {"code": '    print("Hello")\n'})],
        "",
        "",
    ),
    (
        "<tool_call>\n<function=run_py>\n<parameter=code>\n\n</parameter>\n</function>\n</tool_call>",
        [("run_py", {"code": ""})],
        "",
        "",
    ),
    (
        '<tool_call>\n<function=run_py>\n<parameter=code>\n"foo"\n</parameter>\n</function>\n</tool_call>',
        [("run_py", {"code": '"foo"'})],
        "",
        "",
    ),
    ("<tool_call>\n<function=nothing>\n</function>\n</tool_call>", [("nothing", {})], "", ""),
    (
        "<think>\n\n</think>\n\n<tool_call>\n<function=add_one>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
        [("add_one", {"n": 1})],
        "",
        "",
    ),
    (
        "Let me call it.\n<function=add_one>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
        [("add_one", {"n": 1})],
        "Let me call it.",
        "",
    ),
    (
        '<seed:tool_call>\n<function=both>\n<parameter=r1>def f(a = "1"):\n    pass\n</parameter>\n<parameter=r2>2</parameter>\n</function>\n</seed:tool_call>',
        [("both", {"r1": 'def f(a = "1"):\n    pass\n', "r2": 2})],
        "",
        "",
    ),
    ('Action:\n```json\n[{"tool_name": "add_one", "parameters": {"n": 1}}]\n```', [("add_one", {"n": 1})], "", ""),
    ('add_one\n{"n": 1}', [("add_one", {"n": 1})], "", ""),
    (' functools[{"name": "add_one", "arguments": {"n": 1}}]', [("add_one", {"n": 1})], "", ""),
    (
        '<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "add_one", "arguments": {"n": 1}}',
        [("add_one", {"n": 1})],
        "",
        "",
    ),
    (
        '晚上好。\nAnything else?<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "add_one", "arguments": {"n": 1}}',
        [("add_one", {"n": 1})],
        "晚上好。\nAnything else?",
        "",
    ),
    (
        '晚上好。\nAnything else?<|function_call|>{"name": "add_one", "arguments": {"n": 1}}',
        [("add_one", {"n": 1})],
        "晚上好。\nAnything else?",
        "",
    ),
    (
        '晚上好。\nAnything else?[TOOL_CALLS]add_one[ARGS]{"n": 1}',
        [("add_one", {"n": 1})],
        "晚上好。\nAnything else?",
        "",
    ),
    (
        '[THINK]Let me think about [TOOL_CALLS]add_one[ARGS]{"n":1} and more[/THINK][TOOL_CALLS]add_one[ARGS]{"n": 1}',
        [("add_one", {"n": 1})],
        "",
        'Let me think about [TOOL_CALLS]add_one[ARGS]{"n":1} and more',
    ),
    (
        'Let me think about <tool_call>\n{"name": "add_one", "arguments": {"n": 2}}</tool_call> hmm\n</think>\n\n<tool_call>\n{"name": "add_one", "arguments": {"n": 1}}</tool_call>',
        [("add_one", {"n": 1})],
        "",
        None,
    ),
    (
        "<think>Let me think about <|tool_call_start|>[add_one(n=1)]<|tool_call_end|> hmm</think><|tool_call_start|>[add_one(n=1)]<|tool_call_end|>",
        [("add_one", {"n": 1})],
        "",
        "Let me think about <|tool_call_start|>[add_one(n=1)]<|tool_call_end|> hmm",
    ),
    ('<tool_call>\n{"name": "noschema", "arguments": {}}</tool_call>', [("noschema", {})], "", ""),
    (
        '<|START_THINKING|>Let us\nsee<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "add_one", "parameters": {"n": 1}}\n]<|END_ACTION|>',
        [("add_one", {"n": 1})],
        "",
        "Let us\nsee",
    ),
    (
        'Let us\nsee<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "add_one", "parameters": {"n": 1}}\n]<|END_ACTION|>',
        [("add_one", {"n": 1})],
        "",
        "Let us\nsee",
    ),
    (
        "Let us\nsee<|END_THINKING|><|START_TEXT|>晚上好。\nAnything else?<|END_TEXT|>",
        [],
        "晚上好。\nAnything else?",
        "Let us\nsee",
    ),
    (
        '<|channel>thought\nLet us\nsee<channel|><|tool_call>call:clock{town:<|"|>Paris<|"|>}<tool_call|>',
        [("clock", {"town": "Paris"})],
        "",
        "Let us\nsee",
    ),
    (
        "<|channel>thought\n<channel|>晚上好。\nAnything else?<|channel>thought\n<channel|><channel|>",
        [],
        "晚上好。\nAnything else?",
        "",
    ),
    ("<|channel><|channel>thought\n<channel|>Hello", [], "Hello", ""),
    ("<|tool_call>call:price{x:1.5e10}<tool_call|>", [("price", {"x": 1.5e10})], "", ""),
    ("<|tool_call>call:nul{v:null}<tool_call|>", [("nul", {"v": None})], "", ""),
    (
        '<|tool_call>call:todo{todos:[<|"|>买牛奶<|"|>,<|"|>call Ann<|"|>]}<tool_call|>',
        [("todo", {"todos": ["买牛奶", "call Ann"]})],
        "",
        "",
    ),
    (
        '<|tool_call>call:conf{conf:{theme:<|"|>dark<|"|>,count:3}}<tool_call|>',
        [("conf", {"conf": {"theme": "dark", "count": 3}})],
        "",
        "",
    ),
    ("<|tool_call>call:conf{conf:{}}<tool_call|>", [("conf", {"conf": {}})], "", ""),
    (
        '<|tool_call_start|>[Cal.create(title="demo", who=["Alice", "Bob"], meta={"priority": "high", "reminder": true})]<|tool_call_end|>',
        [("Cal.create", {"title": "demo", "who": ["Alice", "Bob"], "meta": {"priority": "high", "reminder": True}})],
        "",
        "",
    ),
    (
        "<|tool_call_start|>[run_py(code=\"def hello():\\n    print('ho')\")]<|tool_call_end|>",
        [("run_py", {"code": "def hello():\n    print('ho')"})],
        "",
        "",
    ),
    (
        '<|tool_call_start|>[run_py(code="print(\\"hi\\")")]<|tool_call_end|>',
        [("run_py", {"code": 'print("hi")'})],
        "",
        "",
    ),
    ("<|tool_call_start|>[nul(v=None)]<|tool_call_end|>", [("nul", {"v": None})], "", ""),
    ("<|tool_call_start|>[nothing()]<|tool_call_end|>", [("nothing", {})], "", ""),
    (
        "Use this format: [link text](url). Example: [Wikipedia](https://www.wikipedia.org).",
        [],
        "Use this format: [link text](url). Example: [Wikipedia](https://www.wikipedia.org).",
        "",
    ),
    (
        'I should call it<|close|>think<|sep|><|open|>response<|sep|>On it.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="add_one" index="1"<|sep|><|open|>argument key="n" type="number"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>',
        [("add_one", {"n": 1})],
        "On it.",
        "I should call it",
    ),
    (
        '</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add_one\n```json\n{"n": 1}```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [("add_one", {"n": 1})],
        "",
        "",
    ),
    (
        'Ich denke</think>Moment<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜>{"town": "Paris"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜>{"town": "Rome"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [("clock", {"town": "Paris"}), ("clock", {"town": "Rome"})],
        "Moment",
        "Ich denke",
    ),
    (
        'Thinking about it</think>Let me call the function.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="todo">\n<｜DSML｜parameter name="todos" parse_string="false">["买牛奶","call Ann"]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        [("todo", {"todos": ["买牛奶", "call Ann"]})],
        "Let me call the function.",
        "Thinking about it",
    ),
    ('<|tools_prefix|>[{"add_one": {"n": 1}}]<|tools_suffix|>', [("add_one", {"n": 1})], "", ""),
    (
        'Let us\nsee\n</think>\n\n<TOOLCALL>[{"name": "add_one", "arguments": {"n": 1}}]</TOOLCALL>\n',
        [("add_one", {"n": 1})],
        "",
        "Let us\nsee",
    ),
    ('{"amount": 123.45, "date": "2025-12-03"}', [], '{"amount": 123.45, "date": "2025-12-03"}', ""),
    ('```json\n"42"\n```', [], '```json\n"42"\n```', ""),
    ('<function=add_one>{"n": 1}</function>', [("add_one", {"n": 1})], "", ""),
    (
        '{"name": "add_one", "parameters": {"n": "1"}}; {"name": "clock", "parameters": {"town": "Rome"}}',
        [("add_one", {"n": 1}), ("clock", {"town": "Rome"})],
        "",
        "",
    ),
    ('```tool_code\nprint(clock(town="Rome"))\n```', [("clock", {"town": "Rome"})], "", ""),
    (
        "<start_function_call>call:clock{town:<escape>London, UK<escape>}<end_function_call>",
        [("clock", {"town": "London, UK"})],
        "",
        "",
    ),
    ('<|python_tag|>clock.call(town="Rome")', [("clock", {"town": "Rome"})], "", ""),
    ('[clock(town="Rome"), add_one(n=3)]', [("clock", {"town": "Rome"}), ("add_one", {"n": 3})], "", ""),
    ('{{"name": "clock", "arguments": {{"town": "Rome"}}}}', [("clock", {"town": "Rome"})], "", ""),
    (
        '<｜DSML｜tool_calls><｜DSML｜invoke name="clock"><｜DSML｜parameter name="arguments" parse_string="false">{"town": "Rome"}'
        "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
        [("clock", {"town": "Rome"})],
        "",
        "",
    ),
    (
        r"<tool_call>todo\n<arg_key>todos</arg_key>\n<arg_value>[{\"id\": 1, \"by\": \"A\\\\B\"}]</arg_value>\n</tool_call>",
        [("todo", {"todos": [{"id": 1, "by": "A\\B"}]})],
        "",
        "",
    ),
    (
        "<tool_call>\n<function=both>\n<parameter=r1>\nx\n<parameter=r2>\n2\n</parameter>\n</function>\n</tool_call>",
        [("both", {"r1": "x", "r2": 2})],
        "",
        "",
    ),
    (
        '<|start|>assistant to=clock.clock<|message|><atem:function_calls><atem:invoke name="clock.clock">'
        '<atem:parameter name="town">Rome</atem:parameter></atem:invoke></atem:function_calls>',
        [("clock", {"town": "Rome"})],
        "",
        "",
    ),
    (
        f'{P}<tool_call>{P}<invoke name="conf">{P}<conf>{P}<tag>a{P}</tag>{P}<tag>b{P}</tag>{P}</conf>{P}</invoke>{P}</tool_call>',
        [("conf", {"conf": {"tag": ["a", "b"]}})],
        "",
        "",
    ),
    (
        '<|open|>tools<|sep|><|open|>call tool="Cal&#46;create" index="1"<|sep|><|open|>argument key="title" type="string"'
        "<|sep|>a &amp; b<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        [("Cal.create", {"title": "a &amp; b"})],
        "",
        "",
    ),
    (
        "I will look it up.\n\n    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜>"
        '{"town": "Rome"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [("clock", {"town": "Rome"})],
        "I will look it up.",
        "",
    ),
    ('Sure, let me look.\nclock(town="Rome")', [("clock", {"town": "Rome"})], "Sure, let me look.", ""),
    ('It is simple.\nclock(town="Rome")', [], 'It is simple.\nclock(town="Rome")', ""),
    ('<function name="opt"><param>1</param></function>', [], "<param>1</param></function>", ""),
]
