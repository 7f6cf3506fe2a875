"""The short examples print the expected lines with a scripted model."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

PRINTED = {
    "client": """\
call    calculator {'expression': '25*4'}
result  True
text    '25 乘以 4 '
text    '等于 100。'
stored  ['user', 'assistant', 'tool', 'assistant']
""",
    "function_tool": """\
sent to the model: The arguments of stock do not fit:
- least: must be a valid integer (given: "five thousand")

Correct the arguments and try again.
sent to the model: {"pieces":4711,"enough":false}
answer: No: there are 4711 bolts.
""",
    "streaming": """\
reply   1
call    population{"city": "Oslo"}
call    population{"city": "Reykjavik"}
result  {"city": "Reykjavik"} -> 139000
result  {"city": "Oslo"} -> 717000
text    'Oslo is la'
text    'rger than '
text    'Reykjavik.'
reply   2
end     answer: Oslo is larger than Reykjavik.
""",
    "plain_text_service": """\
add{"a":2500,"b":42} written as seed, repaired: value given as text
The sum is 2542.
""",
    "actions": """\
basket_add{"item": "lemonade"}: failed: There is no lemonade; the shop sells tea, cake.
basket_add{"item": "tea"}: ok: tea added
basket_add{"item": "cake"}: refused: cake costs 40: that is over the budget of 10.
basket_total{}: ok: 3
the basket costs 3
""",
    "ask_database": """\
refused: DELETE is not allowed: only one reading statement (SELECT, WITH … SELECT, VALUES) may run here.
invalid_arguments: The arguments of sql_execute do not fit:
- sql: There is no column Land in Customer. Columns: CustomerId, FirstName, LastName, Company, Address, City, State, \
Country, PostalCode, Phone, Fax, Email, SupportRepId. (given: SELECT Land, count(*) AS n FROM Customer GROUP BY Land \
ORDER BY n DESC LIMIT 1)

Correct the arguments and try again.
invalid_arguments: The arguments of sql_execute do not fit:
- sql: There is no table Customers. Did you mean Customer? (given: SELECT Country, count(*) AS n FROM Customers GROUP \
BY Country ORDER BY n DESC LIMIT 1)

Correct the arguments and try again.
rows [['USA', 13]]
Most customers live in the USA: 13.
""",
    "learning": """\
first run: 3 clicks, 1 failed, 1 refused; Mara has 1,204 followers.
second run: 1 clicks, 0 failed, 0 refused; Mara has 1,204 followers.
""",
    "scenarios": """\
task    echo hello
call    echo{"text": "hello"}
result  hello
answer  hello

task    搜索包含 'calculator' 的文件，然后计算 [1,2,3,4,5] 的平均值
call    file_search{"query": "calculator"}
result  {"query":"calculator","total_matches":6,"files":["docs/calculator.md","docs/getting-started.md","doc
call    calculator{"numbers": [1, 2, 3, 4, 5], "operation": "mean"}
result  {"mean":3}
answer  docs/calculator.md 等文件包含 calculator；平均值是 3。

task    帮我分析一下 logs/app.log
call    log_transform{"path": "logs/app.log"}
result  {"path":"logs/app.log","lines":305,"format":"python logging","entries":300,"levels":{"CRITICAL":1,"E
answer  日志共 305 行，其中 ERROR 20 条。

task    Search the folder nowhere for the word refund.
call    file_search{"query": "refund", "root_dir": "nowhere"}
result  There is no 'nowhere'. There are: ., docs, logs.
answer  There is no folder called nowhere, so nothing could be searched.

""",
}


def test_every_example_is_tested():
    # the demo has tests of its own, and `test_readme.py` adds `my_functions.py` as tools
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*PRINTED, "demo", "my_functions"}


@pytest.mark.parametrize("name", PRINTED)
def test_each_example_prints_the_expected_lines(name, tmp_path):
    process = subprocess.run(
        [sys.executable, "-X", "utf8", EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (process.returncode, process.stderr, process.stdout) == (0, "", PRINTED[name])
