"""Ordinary queries run unchanged on every engine."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from opposable.domain.errors import ToolError, ToolFailed, ToolRefused
from opposable.sql.database import Database
from opposable.sql.duckdb.parse_tree_guard import check_parse_tree
from opposable.sql.factory import open_database
from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio

SHARED_QUERIES = [
    ("SELECT count(*) FROM orders", [[4]]),
    ("select COUNT(DISTINCT CUSTOMER_ID) from ORDERS", [[3]]),
    ("SELECT name FROM customers WHERE city = 'Paris';", [["Bob"]]),
    (
        "SELECT c.name, sum(o.amount) AS total FROM customers c JOIN orders o ON o.customer_id = c.id"
        " GROUP BY c.name HAVING sum(o.amount) > 20 ORDER BY total DESC",
        [["李雷", 100], ["Ann", 30.5]],
    ),
    (
        "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND amount > 50)",
        [["李雷"]],
    ),
    (
        "SELECT name, (SELECT max(amount) FROM orders o WHERE o.customer_id = customers.id) m FROM customers ORDER BY id",
        [["Ann", 20], ["Bob", 5.25], ["李雷", 100]],
    ),
    (
        "SELECT id, row_number() OVER (PARTITION BY customer_id ORDER BY amount DESC) AS place FROM orders ORDER BY id",
        [[1, 2], [2, 1], [3, 1], [4, 1]],
    ),
    (
        "SELECT id, sum(amount) OVER w AS running FROM orders WINDOW w AS (ORDER BY id ROWS UNBOUNDED PRECEDING)",
        [[1, 10.5], [2, 30.5], [3, 35.75], [4, 135.75]],
    ),
    ("WITH big AS (SELECT * FROM orders WHERE amount > 15), n(x) AS (SELECT count(*) FROM big) SELECT x FROM n", [[2]]),
    ("WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT sum(i) FROM r", [[10]]),
    ("SELECT 'a' AS k UNION SELECT 'b' UNION ALL SELECT 'b' ORDER BY k", [["a"], ["b"], ["b"]]),
    ("SELECT id FROM orders INTERSECT SELECT id FROM customers EXCEPT SELECT 2 ORDER BY 1", [[1], [3]]),
    (
        "SELECT CASE WHEN amount >= 20 THEN 'big' ELSE 'small' END AS size, count(*) FROM orders GROUP BY size ORDER BY 1",
        [["big", 2], ["small", 2]],
    ),
    ("SELECT id FROM orders WHERE note LIKE '%!%%' ESCAPE '!'", [[3]]),
    ("SELECT id FROM orders WHERE ordered BETWEEN '2024-02-01' AND '2024-02-29' ORDER BY id", [[2], [3]]),
    (
        "SELECT o.id FROM orders AS o LEFT JOIN customers c ON c.id = o.customer_id AND c.city = 'Berlin'"
        " WHERE c.id IS NULL ORDER BY o.id",
        [[3], [4]],
    ),
    ("SELECT max(id) FROM orders WHERE customer_id IN (SELECT id FROM customers WHERE name IN ('Ann', 'Bob'))", [[3]]),
    ('SELECT sum("unit price" * quantity) FROM "order lines"', [[130.5]]),
    ('SELECT l."unit price" FROM "order lines" AS l WHERE l.order_id = 2', [[20.0]]),
    ("SELECT 名称 FROM 部门 WHERE 预算 > 500", [["研发部"]]),
    ("SELECT d.名称 AS 部门名, d.预算 AS 钱 FROM 部门 d WHERE d.名称 LIKE '%行政%' ORDER BY 钱", [["行政管理部", 100]]),
    ('SELECT "名称" FROM "部门" WHERE "编号" = 2', [["研发部"]]),
    ("SELECT amount FROM orders WHERE note = '加急'", [[100]]),
    ("SELECT * FROM big_orders ORDER BY id", [[2, 20], [4, 100]]),
    (
        "SELECT coalesce(note, 'none'), upper(substr(name, 1, 1)), length(name), round(1.26, 1), abs(-2), nullif(1, 1)"
        " FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.id = 2",
        [["none", "A", 3, 1.3, 2, None]],
    ),
    ("SELECT cast(amount AS INTEGER) FROM orders WHERE id = 2", [[20]]),
    ("SELECT a.id FROM orders a, orders b WHERE a.id = b.id + 1 AND a.amount > b.amount ORDER BY 1", [[2], [4]]),
    ("SELECT t.x FROM (SELECT id AS x FROM orders) t WHERE t.x > 3", [[4]]),
    ("SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v", [[1, "a"], [2, "b"]]),
    ("VALUES (1, 2)", [[1, 2]]),
    ("SELECT city FROM customers GROUP BY (city) ORDER BY (city) LIMIT (1)", [["Berlin"]]),
    ("SELECT id FROM orders WHERE NOT (id > 1) AND (note IS NOT NULL) AND id NOT IN (2) OR (id) = (9)", [[1]]),
    ("SELECT sum(id) OVER (PARTITION BY (customer_id)) FROM orders WHERE id BETWEEN (1) AND (1)", [[1]]),
    ("SELECT id FROM orders -- the newest one\nORDER BY ordered DESC /* first */ LIMIT 1", [[4]]),
    ("SELECT id FROM orders ORDER BY amount LIMIT 1 OFFSET 1", [[1]]),
    ("SELECT group_concat(id, '-') FROM (SELECT id FROM orders ORDER BY id)", [["1-2-3-4"]]),
    ("SELECT avg(amount) FILTER (WHERE id > 3) FROM orders", [[100.0]]),
    ("SELECT '--not a comment; DROP TABLE x' AS text", [["--not a comment; DROP TABLE x"]]),
    ("SELECT 'it''s' AS t", [["it's"]]),
    ("SELECT rowid FROM orders WHERE id = 1", None),
    ("SELECT json_extract('{\"a\": 3}', '$.a')", None),
    ("SELECT min(o.ordered), max(o.ordered) FROM orders o", [["2024-01-01", "2024-03-31"]]),
    ("SELECT lag(amount) OVER (ORDER BY id) FROM orders ORDER BY id LIMIT 1", [[None]]),
    ("SELECT ntile(2) OVER (ORDER BY id) n, rank() OVER (ORDER BY city) FROM customers", None),
    ("SELECT count(*) FROM orders JOIN customers USING (id)", [[3]]),
]
UNSUPPORTED_ENGINES = dict.fromkeys(
    (
        "SELECT group_concat(id, '-') FROM (SELECT id FROM orders ORDER BY id)",
        "SELECT rowid FROM orders WHERE id = 1",
        "SELECT json_extract('{\"a\": 3}', '$.a')",
    ),
    ("postgres",),
)
_STANDARD_QUOTES = [sql for sql, _ in SHARED_QUERIES if '"' in sql and "json" not in sql]
UNSUPPORTED_ENGINES |= {
    sql: (*UNSUPPORTED_ENGINES.get(sql, ()), "mysql")
    for sql in (
        *_STANDARD_QUOTES,
        "select COUNT(DISTINCT CUSTOMER_ID) from ORDERS",
        "SELECT city FROM customers GROUP BY (city) ORDER BY (city) LIMIT (1)",
        "SELECT group_concat(id, '-') FROM (SELECT id FROM orders ORDER BY id)",
        "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v",
        "VALUES (1, 2)",
        "SELECT avg(amount) FILTER (WHERE id > 3) FROM orders",
        "SELECT rowid FROM orders WHERE id = 1",
    )
}
UNSUPPORTED_ENGINES |= {
    sql: (*UNSUPPORTED_ENGINES.get(sql, ()), "clickhouse")
    for sql, _ in SHARED_QUERIES
    if sql.startswith(
        ("select COUNT(DISTINCT CUSTOMER_ID", "VALUES", "SELECT rowid", "SELECT json_extract", "SELECT 'a' AS k")
    )
    or ("名称" in sql and '"' not in sql)
}
ENGINE_QUERIES = {
    "clickhouse": [
        (
            "SELECT toStartOfMonth(ordered) AS m, sum(amount) FROM orders GROUP BY m ORDER BY m LIMIT 1",
            [["2024-01-01", 10.5]],
        ),
        ("SELECT formatDateTime(ordered, '%Y年%m月') FROM orders WHERE id = 1", [["2024年01月"]]),
        (
            "SELECT toYear(ordered), extract(MONTH FROM ordered), dateDiff('day', ordered, toDate('2024-01-11')) FROM orders WHERE id = 1",
            [[2024, 1, 10]],
        ),
        ("SELECT ordered + INTERVAL 1 DAY FROM orders WHERE id = 1", [["2024-01-02"]]),
        (
            "SELECT number AS n, number AS m FROM numbers(2) ORDER BY n WITH FILL FROM 0 TO 4 STEP 1 INTERPOLATE (m AS m + 1)",
            [[0, 0], [1, 1], [2, 2], [3, 3]],
        ),
        (
            "SELECT dateAdd(DAY, 1, ordered), dateSub(MONTH, 1, ordered) FROM orders WHERE id = 1",
            [["2024-01-02", "2023-12-01"]],
        ),
        (
            "SELECT sumMerge(s), uniqMerge(u) FROM (SELECT sumState(id) AS s, uniqState(id) AS u FROM orders WHERE id < 3)",
            [[3, 2]],
        ),
        (
            "SELECT groupArrayMovingSum(2)(id), deltaSum(id), regr_slope(id, id), L2Distance([0, 0], [3, 4])"
            " FROM (SELECT id FROM orders WHERE id < 4 ORDER BY id)",
            [[[1, 3, 5], 2, 1, 5]],
        ),
        (
            "SELECT countIf(amount > 15), sumIf(amount, id > 2), uniqExact(customer_id), argMax(id, amount) FROM orders",
            [[2, 105.25, 3, 4]],
        ),
        ("SELECT quantile(0.5)(amount) > 0, quantilesExact(0.25, 0.75)(id) FROM orders", [[1, [2, 4]]]),
        (
            "SELECT customer_id, groupArray(id) FROM orders GROUP BY customer_id ORDER BY customer_id",
            [[1, [1, 2]], [2, [3]], [3, [4]]],
        ),
        (
            "SELECT arrayMap(x -> x * 2, marks), marks[1], has(marks, 2), length(marks), extra.a, extra.1 FROM hr.people",
            [[[2, 4], 1, 1, 2, 7, 7]],
        ),
        ("SELECT id, m FROM hr.people ARRAY JOIN marks AS m ORDER BY m", [[1, 1], [1, 2]]),
        ("SELECT arrayJoin(marks) AS m FROM hr.people ORDER BY m", [[1], [2]]),
        ("SELECT tags['k'], mapKeys(tags) FROM types", [[1, ["k"]]]),
        (
            "SELECT big, huge, price, ratio, size, tags, note, at, id, ip, pairs, flag FROM types",
            [
                [
                    "18446744073709551615",
                    -5,
                    "12345678901234567890.5",
                    "NaN",
                    "l",
                    {"k": 1},
                    None,
                    "2024-01-02 03:04:05.678",
                    "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
                    "1.2.3.4",
                    [["a", None]],
                    True,
                ]
            ],
        ),
        ("SELECT id FROM hr.people FINAL WHERE id = 1", [[1]]),
        ("SELECT id FROM orders PREWHERE id > 2 WHERE amount > 10", [[4]]),
        (
            "SELECT customer_id, amount FROM orders ORDER BY amount DESC LIMIT 1 BY customer_id",
            [[3, 100], [1, 20], [2, 5.25]],
        ),
        ("SELECT number FROM numbers(3) ORDER BY number DESC", [[2], [1], [0]]),
        (
            "SELECT if(amount > 15, 'big', 'small'), multiIf(id = 1, 'a', id = 2, 'b', 'c') FROM orders ORDER BY id LIMIT 1",
            [["small", "a"]],
        ),
        ("SELECT amount > 15 ? 'big' : 'small' FROM orders WHERE id = 1", [["small"]]),
        ("WITH 15 AS bound SELECT count() FROM orders WHERE amount > bound", [[2]]),
        ("WITH (SELECT max(amount) FROM orders) AS top SELECT id FROM orders WHERE amount = top", [[4]]),
        ("SELECT name FROM customers WHERE name ILIKE 'a%' OR match(name, '^李') ORDER BY id", [["Ann"], ["李雷"]]),
        (
            "SELECT toString(id), toInt32('7'), CAST(note AS Nullable(String)), id::String FROM orders WHERE id = 1",
            [["1", 7, "first", "1"]],
        ),
        ("SELECT * EXCEPT (note) FROM orders WHERE id = 1", [[1, 1, 10.5, "2024-01-01"]]),
        (
            "SELECT c.name FROM customers AS c ANY LEFT JOIN orders AS o ON o.customer_id = c.id ORDER BY c.id LIMIT 1",
            [["Ann"]],
        ),
        ("SELECT 'it\\'s', 'a\\\\b' # text", [["it's", "a\\b"]]),
        ("SELECT $$it's$$, $a$C:\\$$ $a$", [["it's", "C:\\$$ "]]),
        ("SELECT customer_id, id FROM orders ORDER BY id LIMIT 1 BY customer_id LIMIT 1, 1", [[2, 3]]),
        (
            "SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id WITH TOTALS ORDER BY customer_id LIMIT 1",
            [[1, 30.5]],
        ),
        ("SELECT id, count() FROM orders WHERE id < 0 GROUP BY id WITH TOTALS", []),
        (
            "SELECT quantileGK(100, 0.5)(id), bitmapToArray(groupBitmapState(id)), changeHour(toDateTime('2024-01-01 00:00:00', 'UTC'), 7), "
            "multiSearchAnyCaseInsensitive('Ann', ['AN']), xxh3('a') = xxh3('b'), isPrime(7) FROM orders",
            [[2, [1, 2, 3, 4], "2024-01-01 07:00:00", 1, 0, 1]],
        ),
        ("SELECT 1e20, -1e300, toFloat64(NULL), [inf]", [[1e20, -1e300, None, ["inf"]]]),
        (
            "WITH x -> x * 2 AS twice, (x, y) -> x + y AS add SELECT twice(id), add(id, 1), arrayMap(twice, [id]) FROM orders WHERE id = 2",
            [[4, 3, [4]]],
        ),
        (
            "SELECT arrayMap(x -> x + 1, file), arraySum(file), arrayMap(toString, file) FROM (SELECT [1] AS file)",
            [[[2], 1, ["1"]]],
        ),
        (
            "SELECT COLUMNS('id') APPLY(toString) APPLY(length), * EXCEPT (note) APPLY(max) FROM orders GROUP BY ALL",
            None,
        ),
        ("SELECT * EXCEPT (note) APPLY(max) FROM orders", [[4, 3, 100, "2024-03-31"]]),
        ("SELECT COLUMNS('id') APPLY(quantiles(0.5, 0.9)) APPLY(length) FROM orders", [[2, 2]]),
        ("SELECT x'61', b'01100001'", [["a", "a"]]),
        (
            "SELECT quantilesExactInclusive(0.25, 0.5)(assumeNotNull(id)), countResample(0, 4, 2)(id, id), windowFunnel(9)(toUInt32(id), id = 1, id = 2) FROM orders",
            [[[1.75, 2.5], [1, 2], 2]],
        ),
        ("SELECT number, dummy FROM system.numbers, system.one LIMIT 1", [[0, 0]]),
        ("SELECT currentDatabase(), version() > '1', randomString(3) != '', isConstant(1)", [["default", 1, 1, 1]]),
        (
            "SELECT untuple((1, 'a')), tuplePlus((1, 2), (3, 4)), arrayPartialSort(1, [2, 1]), toValidUTF8('a'), argAndMax(1, 2)",
            [[1, "a", [4, 6], [1, 2], "a", [1, 2]]],
        ),
        ("SELECT lagInFrame(id) OVER (ORDER BY id) FROM orders ORDER BY id LIMIT 1", [[0]]),
        (
            "SELECT id FROM orders WHERE id IN (SELECT id FROM customers) AND customer_id GLOBAL IN (1, 2) ORDER BY id",
            [[1], [2], [3]],
        ),
        (
            "SELECT JSONExtractString('{\"a\": \"x\"}', 'a'), splitByChar('-', 'a-b'), substring('abc', 2, 1)",
            [["x", ["a", "b"], "b"]],
        ),
        ("SELECT id FROM default.orders WHERE id = 2", [[2]]),
        (
            "SELECT a.id FROM orders AS a ASOF JOIN orders AS b ON a.customer_id = b.customer_id AND a.id >= b.id ORDER BY a.id LIMIT 1",
            [[1]],
        ),
        ("SELECT 1 UNION DISTINCT SELECT 1", [[1]]),
        (
            "SELECT 5 MOD 2, (id) mod (2), [7][1] MOD 4, mod(5, 2), id MOD -2 AS mod FROM orders WHERE id = 3",
            [[1, 1, 3, 1, 1]],
        ),
        (
            "SELECT timestamp_sub(DAY, 1, toDate('2024-01-02')), timestamp_add(toDate('2024-01-02'), INTERVAL 1 DAY)",
            [["2024-01-01", "2024-01-03"]],
        ),
    ],
    "mysql": [
        ("SELECT INSERT('abc', 1, 1, 'z')", [["zbc"]]),
        ("SELECT @@version > '1', @@SESSION.time_zone <> '', @@global.max_connections > 0", [[1, 1, 1]]),
        ("SELECT CRC32C('a'), CURRENT_ROLE() IS NULL", [[3251651376, 1]]),
        (
            "SELECT DATABASE(), SCHEMA(), VERSION() > '1', LENGTH(USER()) > 1, LENGTH(CURRENT_USER()) > 1",
            [["shop", "shop", 1, 1, 1]],
        ),
        (
            "SELECT DATE_FORMAT(ordered, '%Y-%m') AS m, sum(amount) FROM orders GROUP BY m ORDER BY m LIMIT 1",
            [["2024-01", 10.5]],
        ),
        ("SELECT DATE_FORMAT(ordered, '%Y年%m月') FROM orders WHERE id = 1", [["2024年01月"]]),
        ("SELECT YEAR(ordered), MONTH(ordered), EXTRACT(DAY FROM ordered) FROM orders WHERE id = 1", [[2024, 1, 1]]),
        (
            "SELECT ordered + INTERVAL 1 DAY, DATE_SUB(ordered, INTERVAL 1 MONTH) FROM orders WHERE id = 1",
            [["2024-01-02", "2023-12-01"]],
        ),
        (
            "SELECT DATEDIFF('2024-01-11', ordered), TIMESTAMPDIFF(MONTH, ordered, '2024-03-02') FROM orders WHERE id = 1",
            [[10, 2]],
        ),
        ("SELECT GROUP_CONCAT(DISTINCT name ORDER BY id DESC SEPARATOR ', ') FROM customers", [["李雷, Bob, Ann"]]),
        ("SELECT `unit price` FROM `order lines` AS l WHERE l.`order_id` = 2", [[20.0]]),
        ("SELECT SUM(`unit price` * quantity) FROM shop.`order lines`", [[130.5]]),
        ("SELECT `名称` FROM `部门` WHERE 编号 = 2", [["研发部"]]),
        ('SELECT name FROM customers WHERE city = "Paris"', [["Bob"]]),
        ("SELECT name FROM customers WHERE name REGEXP '^李' OR name RLIKE '^ANN' ORDER BY id", [["Ann"], ["李雷"]]),
        (
            "SELECT IF(amount > 15, 'big', 'small'), IFNULL(note, '-') FROM orders ORDER BY id LIMIT 1, 1",
            [["big", "-"]],
        ),
        ("SELECT 7 DIV 2, 7 % 2, 7 MOD 4, 1 <=> NULL, 1 XOR 1, 5--1", [[3, 1, 3, 0, 0, 6]]),
        (
            "SELECT CONCAT_WS('/', 'a', 'b'), LPAD('7', 3, '0'), SUBSTRING_INDEX('a-b-c', '-', 2), CHAR_LENGTH('李雷')",
            [["a/b", "007", "a-b", 2]],
        ),
        (
            "SELECT CAST(amount AS SIGNED), CAST('3' AS UNSIGNED), CONVERT(amount, CHAR), CONVERT('a' USING utf8mb4) FROM orders WHERE id = 2",
            [[20, 3, "20.00", "a"]],
        ),
        ("SELECT 'it\\'s', 'a\\\\b', \"say \\\"hi\\\"\"", [["it's", "a\\b", 'say "hi"']]),
        (
            "SELECT customer_id, SUM(amount) FROM orders GROUP BY customer_id WITH ROLLUP",
            [[1, 30.5], [2, 5.25], [3, 100], [None, 135.75]],
        ),
        (
            "SELECT JSON_EXTRACT('{\"a\": 3}', '$.a'), JSON_UNQUOTE('\"x\"'), JSON_OBJECT('k', 1)",
            [["3", "x", '{"k": 1}']],
        ),
        ("SELECT c.name FROM customers c STRAIGHT_JOIN orders o ON o.customer_id = c.id WHERE o.id = 3", [["Bob"]]),
        ("SELECT COUNT(DISTINCT customer_id, amount) FROM orders USE INDEX (PRIMARY)", [[4]]),
        (
            "SELECT big, bits, span, size, raw, y FROM things",
            [["18446744073709551615", 5, "25:00:00", "l", "<blob 2 bytes>", 2024]],
        ),
        ("SELECT STD(amount) > 0, BIT_OR(id) FROM orders", None),
        (
            "SELECT CAST('2024-01-01' AS DATETIME(3)), CONVERT('2024-01-01', DATETIME), CAST('a' AS NCHAR(3))",
            [["2024-01-01T00:00:00", "2024-01-01T00:00:00", "a"]],
        ),
        (
            "SELECT DATE('2024-01-01') + INTERVAL seq DAY AS day FROM seq_0_to_1 ORDER BY day",
            [["2024-01-01"], ["2024-01-02"]],
        ),
        ("SELECT CHARSET('a'), COLLATION('a') <> '', EXPORT_SET(5, 'Y', 'N', ',', 3)", [["utf8mb4", 1, "Y,N,Y"]]),
        ("SELECT 1 FROM DUAL", [[1]]),
        ("SELECT name # the buyer\nFROM customers WHERE id = 1", [["Ann"]]),
        ("SELECT (SELECT COUNT(*) FROM orders) AS n, EXISTS (SELECT 1 FROM customers WHERE id = 9) AS e", [[4, 0]]),
        (
            "SELECT sum(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders ORDER BY id LIMIT 1",
            [[10.5]],
        ),
        ("SELECT * FROM JSON_TABLE('[1, 2]', '$[*]' COLUMNS (z INT PATH '$')) AS j", [[1], [2]]),
        ("SELECT id FROM orders WHERE (id, customer_id) IN (VALUES (1, 2), (2, 1)) OR id IN (VALUES (4))", [[2], [4]]),
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT 3 - n FROM t) CYCLE n RESTRICT SELECT n, \\N FROM t",
            [[1, None], [2, None]],
        ),
        ("SELECT LENGTH(UNCOMPRESS(COMPRESS('a'))), SFORMAT('{}', 1), EXTRACTVALUE('<a>x</a>', '/a')", [[1, "1", "x"]]),
    ],
    "postgres": [
        (
            "SELECT INTERVAL '1 day 02:03:04' DAY TO MINUTE, INTERVAL '2 years 3 months' YEAR,"
            " INTERVAL '1-2' YEAR TO MONTH",
            [["1 day 02:03:00", "2 years", "1 year 2 mons"]],
        ),
        (
            "SELECT length(current_database()) > 0, pg_column_size(1)",
            [[True, 4]],
        ),
        (
            "SELECT version() LIKE 'PostgreSQL%', current_schema(), current_schema, 7::oid",
            [[True, "public", "public", 7]],
        ),
        ("SELECT U&'\\0041b', U&'d!0061''t' UESCAPE '!'", [["Ab", "da't"]]),
        ("SELECT json_array(1, NULL NULL ON NULL), json_array(1, NULL ABSENT ON NULL)", [[[1, None], [1]]]),
        (
            "SELECT q::text, c.name FROM customers c, to_tsquery('english', 'red') q, array_length(ARRAY[1], 1) n"
            " WHERE c.id = n AND to_tsvector('english', 'red shoes') @@ q",
            [["'red'", "Ann"]],
        ),
        ("SELECT c.name FROM public.customers AS c WHERE c.city ILIKE 'par%'", [["Bob"]]),
        (
            "SELECT to_char(date_trunc('month', ordered), 'YYYY-MM') AS m, sum(amount) FROM orders GROUP BY 1 ORDER BY 1",
            None,
        ),
        ("SELECT to_char(ordered, 'YYYY年MM月') FROM orders WHERE id = 1", [["2024年01月"]]),
        ("SELECT extract(year FROM ordered), date_part('month', ordered) FROM orders WHERE id = 1", [[2024, 1.0]]),
        (
            "SELECT ordered + INTERVAL '1 day', ordered - DATE '2023-12-31' FROM orders WHERE id = 1",
            [["2024-01-02T00:00:00", 1]],
        ),
        (
            "SELECT age(DATE '2026-11-23', DATE '2024-01-01'), INTERVAL '1 month' * 3, INTERVAL '-01:30'",
            [["2 years 10 mons 22 days", "3 mons", "-01:30:00"]],
        ),
        (
            "SELECT DATE 'infinity', TIMESTAMP '-infinity', TIMESTAMPTZ 'infinity', DATE '0044-03-15 BC', DATE '12024-01-01'",
            [["infinity", "-infinity", "infinity", "0044-03-15 BC", "12024-01-01"]],
        ),
        (
            "SELECT age(DATE '2024-03-01', DATE '2024-02-01')::text, now() IS NOT NULL, CURRENT_DATE > DATE '2020-01-01'",
            [["1 mon", True, True]],
        ),
        (
            "SELECT DISTINCT ON (customer_id) customer_id, amount FROM orders ORDER BY customer_id, amount DESC LIMIT 1",
            [[1, 20]],
        ),
        ("SELECT string_agg(name, ', ' ORDER BY id) FROM customers", [["Ann, Bob, 李雷"]]),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), stddev(amount) > 0 FROM orders", [[15.25, True]]),
        ("SELECT array_agg(id ORDER BY id), jsonb_agg(id ORDER BY id) FROM orders WHERE id < 3", [[[1, 2], [1, 2]]]),
        ("SELECT marks[1], cardinality(marks), extra ->> 'a', (extra -> 'a')::int FROM hr.people", [[1, 2, "7", 7]]),
        (
            "SELECT extra #>> '{a}', extra @> '{\"a\": 7}', 1 = ANY(marks), marks && ARRAY[2] FROM hr.people",
            [["7", True, True, True]],
        ),
        ("SELECT p.id, m FROM hr.people p CROSS JOIN LATERAL unnest(p.marks) AS m ORDER BY 2", [[1, 1], [1, 2]]),
        ("SELECT id FROM shop.hr.people", [[1]]),
        ("SELECT n FROM generate_series(1, 3) AS n ORDER BY n DESC", [[3], [2], [1]]),
        (
            "SELECT d::date FROM generate_series(DATE '2024-01-01', DATE '2024-01-02', INTERVAL '1 day') AS g(d)",
            [["2024-01-01"], ["2024-01-02"]],
        ),
        ("SELECT * FROM json_to_recordset('[{\"a\": 1}]') AS x(a int)", [[1]]),
        ('SELECT key, value FROM jsonb_each_text(\'{"k": "v"}\')', [["k", "v"]]),
        (
            "SELECT c.name, l.amount FROM customers c JOIN LATERAL (SELECT amount FROM orders o WHERE o.customer_id = c.id"
            " ORDER BY amount DESC LIMIT 1) l ON true WHERE c.id = 1",
            [["Ann", 20]],
        ),
        (
            "SELECT grouping(customer_id), sum(amount) FROM orders GROUP BY ROLLUP (customer_id) ORDER BY 1 DESC LIMIT 1",
            [[1, 135.75]],
        ),
        ("SELECT count(*) FROM orders GROUP BY GROUPING SETS ((customer_id), ()) ORDER BY 1 DESC LIMIT 1", [[4]]),
        ("SELECT name FROM customers WHERE name ~ '^李' OR name ~* '^ANN' ORDER BY id", [["Ann"], ["李雷"]]),
        ("SELECT name FROM customers WHERE name SIMILAR TO '(A|B)%' ORDER BY id FETCH FIRST 1 ROWS ONLY", [["Ann"]]),
        (
            "SELECT substring(name FROM 1 FOR 2), position('n' IN name), trim(BOTH FROM ' a '), overlay('abc' PLACING 'x' FROM 2) FROM customers WHERE id = 1",
            [["An", 2, "a", "axc"]],
        ),
        (
            "SELECT regexp_replace('a1b2', '[0-9]', '', 'g'), split_part('a-b', '-', 2), lpad('7', 3, '0'), initcap('ab')",
            [["ab", "b", "007", "Ab"]],
        ),
        (
            "SELECT round(amount::numeric, 1), amount::int, CAST(amount AS text) FROM orders WHERE id = 1",
            [[10.5, 11, "10.50"]],
        ),
        (
            "SELECT format('%s-%s', 1, 2), concat_ws('/', 'a', 'b'), greatest(1, 2), coalesce(NULL, 'x')",
            [["1-2", "a/b", 2, "x"]],
        ),
        ("SELECT 1 WHERE 1 IS DISTINCT FROM 2 AND NULL IS NOT DISTINCT FROM NULL", [[1]]),
        ("SELECT ROW(1, 'a'), (SELECT c FROM customers c WHERE id = 2) IS NOT NULL", [[{"f1": 1, "f2": "a"}, True]]),
        ('SELECT "FullName" FROM "Staff" WHERE "Id" = 1', [["Eve"]]),
        ('SELECT s."FullName" AS "Name" FROM "Staff" s ORDER BY "Name"', [["Eve"]]),
        ("SELECT count(*) FILTER (WHERE id > 2), bool_or(id > 3), every(id > 0) FROM orders", [[2, True, True]]),
        (
            "SELECT sum(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders ORDER BY id LIMIT 1",
            [[10.5]],
        ),
        (
            "WITH a AS MATERIALIZED (SELECT 1 AS x), b AS NOT MATERIALIZED (SELECT x + 1 AS y FROM a) SELECT x, y FROM a, b",
            [[1, 2]],
        ),
        ("TABLE customers LIMIT 1", [[1, "Ann", "Berlin", "2023-01-05"]]),
        (
            "SELECT gen_random_uuid() IS NOT NULL, md5('a'), encode('a'::bytea, 'hex')",
            [[True, "0cc175b9c0f1b6a831c399e269772661", "61"]],
        ),
        ("SELECT to_tsvector('english', 'red shoes') @@ to_tsquery('english', 'shoe')", [[True]]),
        (
            "SELECT 2 OPERATOR(pg_catalog.+) 3 OPERATOR(*) 1, pg_catalog.upper('a'), name OPERATOR(pg_catalog.~) '^A' FROM customers WHERE id = 1",
            [[5, "A", True]],
        ),
        ("SELECT i, c FROM pg_catalog.generate_series(1, 1) AS i, pg_catalog.concat('a') AS c", [[1, "a"]]),
        ("SELECT id, pg_input_is_valid(note, 'numeric(10,2)') FROM orders WHERE id = 1", [[1, False]]),
        (
            "SELECT message, sql_error_code FROM pg_input_error_info('x', 'integer')",
            [['invalid input syntax for type integer: "x"', "22P02"]],
        ),
        (
            "SELECT jsonb_exists('{\"a\": 1}', 'a'), jsonb_exists_any('{\"a\": 1}', ARRAY['b']), jsonb_contains('[1]', '[]')",
            [[True, False, True]],
        ),
        (
            "SELECT INTERVAL '1.567' SECOND(2), INTERVAL '1 02:03:04.567' DAY TO SECOND(1), '90'::interval second(1), INTERVAL(1) '1.26 s'",
            [["00:00:01.57", "1 day 02:03:04.6", "00:01:30", "00:00:01.3"]],
        ),
        (
            "SELECT a, b, x FROM JSON_TABLE('[{\"a\": 1, \"b\": [7]}]'::jsonb, '$[*]' AS root COLUMNS (a INT PATH '$.a', b JSONB FORMAT JSON PATH '$.b',"
            " NESTED PATH '$.b[*]' AS inner_path COLUMNS (x INT PATH '$'))) AS t",
            [[1, [7], 7]],
        ),
        ("SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AT TIME ZONE 'Asia/Shanghai'", [["2024-01-01T08:00:00"]]),
        (
            'SELECT \'{"n": 123456789012345678901234567890, "p": 0.1234567890123456789, "q": 1.5}\'::jsonb,'
            " ARRAY[12345678901234567890.5, 0.1]",
            [
                [
                    {"n": "123456789012345678901234567890", "p": "0.1234567890123456789", "q": 1.5},
                    ["12345678901234567890.5", 0.1],
                ]
            ],
        ),
        ("SELECT '{\"n\": 1e1000000}'::json, length((10::numeric ^ 1000)::text) > 1000", [[{"n": "1E+1000000"}, True]]),
        ("SELECT TIME '24:00', TIMETZ '24:00+08', TIME '10:00'", [["24:00:00", "24:00:00+08", "10:00:00"]]),
        ("SELECT string_agg(name, E'\\n' ORDER BY id), e'\\\\w\\t' FROM customers", [["Ann\nBob\n李雷", "\\w\t"]]),
        ("SELECT $$it's$$, $a$ $b$\\$a$, $$$$", [["it's", " $b$\\", ""]]),
        ("SELECT 'a' -- b\n'c', 1 -- d\r, 2, $e\u2014$f$e\u2014$", [["ac", 1, 2, "f"]]),
        ("SELECT E'\\'; DELETE FROM orders; --', E'a\\\\', 'b\\'", [["'; DELETE FROM orders; --", "a\\", "b\\"]]),
        ("SELECT 1 <> ALL (ARRAY[2, 3]), 1 = SOME (ARRAY[1]), 1 <> ALL (VALUES (2))", [[True, True, True]]),
        (
            "SELECT host(ip), masklen(ip), network(ip), family(ip) FROM (SELECT '10.1.2.3/24'::inet AS ip) t",
            [["10.1.2.3", 24, "10.1.2.0/24", 4]],
        ),
        (
            "SELECT t.* FROM JSON_TABLE('[{\"a\": 1}, {\"a\": 2}]', '$[*]' COLUMNS (n FOR ORDINALITY, a int PATH '$.a')) AS t",
            [[1, 1], [2, 2]],
        ),
        ("SELECT count(*) FROM orders TABLESAMPLE BERNOULLI (100) REPEATABLE (1)", [[4]]),
        (
            "SELECT j.id, c.name, o.ordered::timestamptz AT LOCAL = o.ordered FROM orders o JOIN customers c USING (id) AS j"
            " WHERE j.id = 2",
            [[2, "Bob", True]],
        ),
        (
            "SELECT point(0, 0) <-> point(3, 4), box '((0,0),(1,1))' <<| box '((2,2),(3,3))', ?- lseg '((0,0),(1,0))',"
            " # path '[(0,0),(1,1)]', @-@ lseg '((0,0),(0,2))', lseg '((0,0),(1,0))' ?|| lseg '((0,1),(1,1))',"
            " (point(1, 1) ## lseg '((0,0),(2,0))')[0]",
            [[5, True, True, 2, 2, True, 1]],
        ),
        (
            "SELECT pg_typeof(1), trim_array(ARRAY[1, 2], 1), tsvector_to_array('a b'::tsvector)",
            [["integer", [1], ["a", "b"]]],
        ),
    ],
    "sqlite": [
        ("SELECT sqlite_version() > '3'", [[True]]),
        (
            "SELECT strftime('%Y-%m', ordered) AS month, count(*) FROM orders GROUP BY month ORDER BY month LIMIT 1",
            [["2024-01", 1]],
        ),
        ("SELECT date('2024-01-31', '+1 month', 'start of month')", [["2024-03-01"]]),
        ("SELECT julianday('2024-01-02') - julianday('2024-01-01')", [[1.0]]),
        ('SELECT name FROM customers WHERE city = "Paris"', [["Bob"]]),
        ("SELECT [unit price] FROM [order lines] WHERE order_id = 2", [[20.0]]),
        ("SELECT `name` FROM `customers` WHERE `id` = 1", [["Ann"]]),
        ("SELECT value FROM json_each('[5, 6]')", [[5], [6]]),
        ("SELECT c.name, e.value FROM customers c, json_each('[1]') e WHERE c.id = 1", [["Ann", 1]]),
        ("SELECT body FROM notes WHERE notes MATCH 'shoes'", [["red shoes"]]),
        ("SELECT typeof(1.5), iif(1 > 0, 'y', 'n'), printf('%.2f', 2), instr('abc', 'b')", [["real", "y", "2.00", 2]]),
        ("SELECT total(amount), group_concat(DISTINCT customer_id) FROM orders", None),
        ("SELECT name FROM customers WHERE name GLOB 'A*' COLLATE NOCASE", [["Ann"]]),
        ("SELECT CAST('7' AS UNSIGNED BIG INT), CAST(7 AS NATIVE CHARACTER(9))", [[7, "7"]]),
        (
            "SELECT o.id, c.name FROM orders o, customers c ON c.id = customer_id, (SELECT 1 AS one, 2) t LEFT JOIN customers d USING (id) WHERE one = 1 ORDER BY 1 LIMIT 1, 2",
            [[2, "Ann"], [3, "Bob"]],
        ),
        ("SELECT a.id, b.name FROM orders a, customers b USING (id) ORDER BY 1 LIMIT 1", [[1, "Ann"]]),
    ],
    "duckdb": [
        ("SELECT current_database(), current_schema(), version() LIKE 'v%'", [["shop", "main", True]]),
        ("SELECT hex(x'00fF'), x'00' < X'01'", [["00FF", True]]),
        ("FROM customers SELECT name WHERE id = 1", [["Ann"]]),
        ("FROM customers LIMIT 1", [[1, "Ann", "Berlin", "2023-01-05"]]),
        (
            "SELECT date_trunc('month', ordered)::DATE AS m, count(*) FROM orders GROUP BY ALL ORDER BY ALL LIMIT 1",
            [["2024-01-01", 1]],
        ),
        ("SELECT strftime(ordered, '%Y年%m月') FROM orders WHERE id = 1", [["2024年01月"]]),
        (
            "SELECT year(ordered), extract(month FROM ordered), date_diff('day', ordered, DATE '2024-01-11')"
            " FROM orders WHERE id = 1",
            [[2024, 1, 10]],
        ),
        ("SELECT ordered + INTERVAL 1 DAY FROM orders WHERE id = 1", [["2024-01-02T00:00:00"]]),
        (
            "SELECT age(DATE '2026-11-23', DATE '2024-01-01') AS a, to_days(id) AS a FROM orders WHERE id < 3 ORDER BY id DESC",
            [["2 years 10 months 22 days", "2 days"], ["2 years 10 months 22 days", "1 day"]],
        ),
        (
            "SELECT [INTERVAL 1 MONTH], {'a': INTERVAL 1 YEAR}, [TIMESTAMP_NS '2024-01-01 00:00:00.123456789']",
            [["[1 month]", "{'a': 1 year}", "['2024-01-01 00:00:00.123456789']"]],
        ),
        ("SELECT list_reduce([1, 2, 3], lambda a, b: a + b)", [[6]]),
        (
            "SELECT customer_id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY amount) = 1"
            " ORDER BY 1 LIMIT 1",
            [[1, 10.5]],
        ),
        ("SELECT * EXCLUDE (note) REPLACE (amount * 2 AS amount) FROM orders WHERE id = 1", [[1, 1, 21, "2024-01-01"]]),
        ("SELECT list_transform([1, 2], lambda x: x + 1), [y * 2 FOR y IN [1, 2] IF y > 1]", [[[2, 3], [4]]]),
        (
            "SELECT list(name ORDER BY id), arg_max(name, id), any_value(1) FROM customers",
            [[["Ann", "Bob", "李雷"], "李雷", 1]],
        ),
        ("SELECT quantile_cont(amount, 0.5), median(amount), stddev(amount) > 0 FROM orders", None),
        ("SELECT {'a': 1}.a, {'a': {'b': 2}}['a']['b'], map {'k': 'v'}['k']", [[1, 2, "v"]]),
        ("SELECT extra.a, p.extra.a, marks[1] FROM hr.people p", [[7, 7, 1]]),
        ("SELECT unnest(marks) AS m FROM hr.people ORDER BY m", [[1], [2]]),
        ("SELECT p.id, u.m FROM hr.people p, unnest(p.marks) AS u(m) ORDER BY 2", [[1, 1], [1, 2]]),
        ("SELECT id FROM shop.hr.people", [[1]]),
        ("SELECT sum(range) FROM range(5)", [[10]]),
        (
            "SELECT g.d::DATE FROM generate_series(DATE '2024-01-01', DATE '2024-01-02', INTERVAL 1 DAY) AS g(d)",
            [["2024-01-01"], ["2024-01-02"]],
        ),
        (
            "SELECT string_agg(name, ', ' ORDER BY id), name_length FROM (SELECT *, len(name) AS name_length FROM customers)"
            " GROUP BY name_length ORDER BY 2 LIMIT 1",
            [["李雷", 2]],
        ),
        ("SELECT a.id FROM orders a ASOF JOIN orders b ON a.ordered >= b.ordered ORDER BY 1 LIMIT 1", [[1]]),
        (
            "SELECT * FROM (SELECT customer_id, amount FROM orders) PIVOT (sum(amount) FOR customer_id IN (1, 2))",
            [[30.5, 5.25]],
        ),
        ("SELECT name FROM customers WHERE name ILIKE 'a%' OR regexp_matches(name, '^李')", [["Ann"], ["李雷"]]),
        ("SELECT amount AS a, a * 2 AS b FROM orders WHERE a > 50", [[100, 200]]),
        ("SELECT lpad(id::VARCHAR, 5, '0'), printf('%05.2f', amount) FROM orders WHERE id = 1", [["00001", "10.50"]]),
        ("SELECT COLUMNS('^n') FROM customers WHERE id = 1", [["Ann"]]),
        ("SELECT count(*) FROM orders TABLESAMPLE 100%", [[4]]),
        ("SELECT try_cast('x' AS INTEGER), 7 // 2, 2 ** 3", [[None, 3, 8.0]]),
        (
            "SELECT DISTINCT ON (customer_id) customer_id, amount FROM orders ORDER BY customer_id, amount DESC LIMIT 1",
            [[1, 20]],
        ),
        (
            "SELECT grouping(customer_id), sum(amount) FROM orders GROUP BY ROLLUP (customer_id) ORDER BY 1 DESC LIMIT 1",
            [[1, 135.75]],
        ),
        (
            "SELECT c.name, l.amount FROM customers c, LATERAL (SELECT amount FROM orders o WHERE o.customer_id = c.id"
            " ORDER BY amount DESC LIMIT 1) l WHERE c.id = 1",
            [["Ann", 20]],
        ),
        ("SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' IS NOT NULL", [[True]]),
        ("TABLE customers LIMIT 1", None),
        ("(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1", [[1], [2]]),
        ("SELECT $$it's$$, $a$b$a$, E'it\\'s', e'\\\\', 'a\\'", [["it's", "b", "it's", "\\", "a\\"]]),
        ("SELECT 'a' -- b\n'c', 1 -- d\r, 2", [["ac", 1, 2]]),
        ("SELECT [1, 2, 3][::-1], [1, 2][1::INT], 1 <> ALL ([2, 3])", [[[3, 2, 1], 1, True]]),
        (
            "SELECT 19.99::FLOAT, [1.1]::FLOAT[1], 'nan'::FLOAT, NULL::FLOAT, 16777216::FLOAT",
            [[19.99, [1.1], "NaN", None, 16777216]],
        ),
        (
            "SELECT t, DATE '9999-12-31' FROM (VALUES (TIMESTAMP '0001-01-01'), (TIMESTAMP '2024-05-01 10:00')) AS q(t)",
            [["0001-01-01T00:00:00", "9999-12-31"], ["2024-05-01T10:00:00", "9999-12-31"]],
        ),
        (
            "SELECT TIMESTAMP_NS '2024-01-01 00:00:00.123456789', TIME_NS '10:00:00.123456789'",
            [["2024-01-01 00:00:00.123456789", "10:00:00.123456789"]],
        ),
        (
            "PIVOT orders ON customer_id IN (1, 3) USING sum(amount) GROUP BY note",
            None,
        ),
        (
            "WITH o AS (SELECT customer_id, amount FROM orders) PIVOT o ON customer_id IN (1) USING sum(amount)",
            [[30.5]],
        ),
        (
            "PIVOT orders ON customer_id IN (1) USING sum(amount) GROUP BY note ORDER BY note DESC NULLS LAST, 2 LIMIT 1",
            [["加急", None]],
        ),
        (
            "UNPIVOT (SELECT id, amount FROM orders WHERE id = 1) ON amount INTO NAME name VALUE value",
            [[1, "amount", 10.5]],
        ),
        ("SELECT count(*) FROM orders USING SAMPLE reservoir(2 ROWS) REPEATABLE (1)", [[2]]),
    ],
}


async def test_usual_queries_run_unchanged(shop, engine):
    tools = SqlTools(shop)
    wrong = []
    for sql, rows in [
        case for case in SHARED_QUERIES if engine not in UNSUPPORTED_ENGINES.get(case[0], ())
    ] + ENGINE_QUERIES[engine]:
        try:
            found = await tools.execute(sql)
        except ToolError as error:
            wrong.append((sql, rows, str(error), []))
            continue
        if found["corrections"] or (rows is not None and found["rows"] != rows):
            wrong.append((sql, rows, found["rows"], found["corrections"]))
    assert wrong == []


@pytest.mark.parametrize(
    ("table", "values", "sql"),
    [
        ("rtree(id, west, east)", "(1, 0, 5)", "SELECT id FROM t WHERE west <= 3 AND east >= 2"),
        ("fts4(body)", "('red shoes')", "SELECT count(*) FROM t WHERE t MATCH 'red'"),
    ],
)
async def test_virtual_tables_are_read_and_not_written(tmp_path, table, values, sql):
    path = tmp_path / "virtual.sqlite"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"CREATE VIRTUAL TABLE t USING {table}")
        file.execute(f"INSERT INTO t VALUES {values}")
        (shadow, *_) = file.execute("SELECT name FROM pragma_table_list WHERE type = 'shadow'").fetchone()
        column = file.execute(f"SELECT * FROM {shadow}").description[0][0]
    file.close()
    before = path.read_bytes()
    database = await open_database(str(path))
    assert (await SqlTools(database).execute(sql))["rows"] == [[1]]
    for write in (f"INSERT INTO t VALUES {values}", "INSERT INTO t(t) VALUES ('optimize')"):
        with pytest.raises(ToolRefused, match="not authorized"):
            await database.run(write)
    for write in (
        f"INSERT INTO {shadow} DEFAULT VALUES",
        f"UPDATE {shadow} SET {column} = {column}",
        f"DELETE FROM {shadow}",
    ):
        with pytest.raises(ToolRefused, match="attempt to write a readonly database"):
            await database.run(write)
    await database.close()
    assert path.read_bytes() == before


async def test_times_with_a_zone_are_in_iso_form(duckdb_shop):
    found = await SqlTools(duckdb_shop).execute("SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS t")
    assert found["rows"][0][0].startswith(("2024-01-01T00:00:00", "2023-12-31T", "2024-01-01T"))


def public_questions() -> Path:
    return Path(__file__).parents[3] / "shared" / "data" / "text2sql" / "questions.jsonl"


async def test_every_gold_query_of_the_public_sets_returns_its_rows(file_engine):
    questions = public_questions()
    if not questions.exists():
        pytest.skip(f"the public question sets are not at {questions}")
    opened: dict[Path, Database] = {}
    wrong = []
    for line in questions.read_text("utf-8").splitlines():
        question = json.loads(line)
        path = next((questions.parent / question["set"]).glob(f"{question['db']}.*"))
        if (path.suffix == ".duckdb") != (file_engine == "duckdb"):
            continue
        opened[path] = opened.get(path) or await open_database(str(path))
        found = await SqlTools(opened[path]).execute(question["gold_sql"], limit=1000)
        if found["corrections"] or found["row_count"] != min(question["gold_rows"], 1000):
            wrong.append((question["id"], question["gold_sql"], found["row_count"], found["corrections"]))
    for database in opened.values():
        await database.close()
    assert wrong == []
    assert opened


@pytest.mark.parametrize("clause", ["ORDER BY lower(note), 2", "ORDER BY 2 LIMIT 1 + 1", "LIMIT 50%", "OFFSET 1"])
async def test_expressions_after_a_pivot_run_as_written(duckdb_shop, clause):
    pivot = f"PIVOT orders ON customer_id IN (1) USING sum(amount) GROUP BY note {clause}"
    for sql in (pivot, f"SELECT * FROM ({pivot}) WHERE note IS NULL OR note <> ''"):
        found = await SqlTools(duckdb_shop).execute(sql)
        assert found["sql"] == sql
        assert found["rows"]


async def test_a_pivot_without_values_runs_as_written(duckdb_shop):
    for pivot in (
        "PIVOT orders ON note || 'x' IN ('ax') USING count(*)",
        "PIVOT orders ON CASE WHEN amount > 1 THEN 'a' END, note USING sum(amount) GROUP BY customer_id LIMIT 9",
        "WITH p AS (PIVOT (FROM orders) ON note USING max(amount) GROUP BY id) SELECT * FROM p ORDER BY id",
        "PIVOT orders o JOIN customers c ON c.id = o.customer_id ON city, year(ordered) USING sum(amount) GROUP BY name",
        "FROM (PIVOT orders JOIN customers USING (id) ON city USING count(*) ORDER BY ALL) ORDER BY ALL",
        "UNPIVOT orders JOIN customers c USING (id) ON amount INTO NAME k VALUE v ORDER BY v * 2",
    ):
        found = await SqlTools(duckdb_shop).execute(pivot)
        assert (found["sql"], found["corrections"]) == (pivot, [])
        assert found["rows"]


async def test_a_pivot_to_more_columns_than_can_be_planned_in_time_fails(duckdb_shop):
    with pytest.raises(ToolFailed, match="Pivot column limit"):
        await SqlTools(duckdb_shop).execute("PIVOT (FROM range(20000) AS r(i)) ON i USING count(*)")


@pytest.mark.parametrize("call", ["getenv(note)", "repeat(note, 999999999)"])
@pytest.mark.parametrize("pivot", ["ON {} USING count(*)", "ON note, {} USING count(*)", "ON note USING max({})"])
def test_the_tree_of_a_pivot_without_values_is_checked(call, pivot):
    with duckdb.connect() as connection, pytest.raises(ToolRefused, match=r"not available|blow text up"):
        check_parse_tree(connection, f"PIVOT orders {pivot.format(call)}")


async def test_infinite_dates_are_text(duckdb_shop):
    found = await SqlTools(duckdb_shop).execute(
        "SELECT unnest(['infinity', '-infinity', '9999-12-31', '0044-03-15 (BC)'])::DATE AS d,"
        " unnest(['infinity', '2024-05-01 10:00:00'])::TIMESTAMP AS t, 1 AS n"
    )
    assert [row[0] for row in found["rows"]] == ["infinity", "-infinity", "9999-12-31", "0044-03-15 (BC)"]
    assert [row[1:] for row in found["rows"][:2]] == [["infinity", 1], ["2024-05-01T10:00:00", 1]]
