"""Right SQL for a small shop in English and Chinese, with the questions that it answers, for three engines."""

import re
from typing import NamedTuple

from tests.harmless.unusual_statements import UNUSUAL_SQL

SCHEMA = [
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40), city VARCHAR(40), status VARCHAR(10))",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), amount INTEGER,"
    " status VARCHAR(10), ordered DATE, year INTEGER)",
    "CREATE TABLE products (id INTEGER PRIMARY KEY, name VARCHAR(40), price INTEGER, category VARCHAR(20))",
    "CREATE TABLE lines (order_id INTEGER REFERENCES orders(id), product_id INTEGER REFERENCES products(id),"
    " quantity INTEGER)",
    "CREATE TABLE orders_2023 (id INTEGER, amount INTEGER)",
    "CREATE TABLE ordres_2024 (id INTEGER, amuont INTEGER)",
    'CREATE TABLE "Order Details" ("Unit Price" INTEGER, "group" VARCHAR(10), "Größe" INTEGER)',
    "CREATE TABLE 部门 (编号 INTEGER PRIMARY KEY, 名称 VARCHAR(40))",
    "CREATE TABLE 员工 (编号 INTEGER PRIMARY KEY, 姓名 VARCHAR(40), 部门编号 INTEGER REFERENCES 部门(编号),"
    " 工资 INTEGER, 入职 DATE)",
    "INSERT INTO customers VALUES (1, 'Ann', 'Berlin', 'active'), (2, 'Bob', 'Paris', 'active'),"
    " (3, '李雷', '上海', 'closed'), (4, 'Dora', 'Berlin', 'closed'), (5, 'O''Neil', NULL, 'active')",
    "INSERT INTO orders VALUES (1, 1, 10, 'paid', '2023-01-05', 2023), (2, 1, 20, 'unpaid', '2023-02-10', 2023),"
    " (3, 2, 30, 'paid', '2024-02-29', 2024), (4, 3, 40, 'paid', '2024-12-31', 2024),"
    " (5, 3, 50, 'unpaid', '2024-12-31', 2024)",
    "INSERT INTO products VALUES (1, 'tea', 3, 'drink'), (2, 'cup', 8, 'ware'), (3, '茶叶', 12, 'drink'),"
    " (4, ' padded ', 1, 'ware')",
    "INSERT INTO lines VALUES (1, 1, 2), (1, 2, 1), (2, 1, 5), (3, 3, 1), (4, 2, 2), (5, 1, 1)",
    "INSERT INTO orders_2023 VALUES (1, 10), (2, 20)",
    "INSERT INTO ordres_2024 VALUES (3, 30), (4, 40), (5, 50)",
    "INSERT INTO \"Order Details\" VALUES (3, 'a', 1), (8, 'b', 2), (8, NULL, 3)",
    "INSERT INTO 部门 VALUES (1, '行政管理部'), (2, '研发中心'), (3, '行政'), (4, '销售部')",
    "INSERT INTO 员工 VALUES (1, '王芳', 1, 9000, '2022-03-01'), (2, '李娜', 2, 15000, '2023-06-15'),"
    " (3, '张伟', 2, 15000, '2024-01-10'), (4, '赵敏', 3, 7000, '2024-05-20')",
]


class Statement(NamedTuple):
    """A question and the SQL that a perfect writer writes for it."""

    question: str
    sql: str


EVERY_ENGINE = [
    Statement("How many customers are there?", "SELECT count(*) FROM customers"),
    Statement("How many customers are there", "SELECT COUNT(*) AS n FROM customers c"),
    Statement("List the names", "select name from customers"),
    Statement("Names and cities", "SELECT c.name, c.city FROM customers AS c ORDER BY c.name"),
    Statement(
        "Customers without an order",
        "SELECT c.name FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.name"
        " HAVING COUNT(o.id) = 0",
    ),
    Statement(
        "Customers without orders",
        "SELECT name FROM customers WHERE id NOT IN (SELECT customer_id FROM orders WHERE customer_id IS NOT NULL)",
    ),
    Statement(
        "Who never ordered?",
        "SELECT c.name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)",
    ),
    Statement(
        "Who has no order?",
        "SELECT c.name FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL",
    ),
    Statement(
        "Customers that have at least one order",
        "SELECT DISTINCT c.name FROM customers c JOIN orders o ON o.customer_id = c.id",
    ),
    Statement("How many customers have an order?", "SELECT count(DISTINCT customer_id) FROM orders"),
    Statement(
        "Number of customers with orders",
        "SELECT count(DISTINCT c.id) FROM customers c JOIN orders o ON c.id = o.customer_id",
    ),
    Statement(
        "Paid orders of active customers",
        "SELECT o.id FROM customers c JOIN orders o ON o.customer_id = c.id"
        " WHERE c.status = 'active' AND o.status = 'paid'",
    ),
    Statement("How many orders are unpaid?", "SELECT count(*) FROM orders WHERE status = 'unpaid'"),
    Statement("How many orders are paid?", "SELECT count(*) FROM orders WHERE status = 'paid'"),
    Statement(
        "Unpaid orders above 100", "SELECT id FROM orders WHERE status = 'unpaid' AND amount > 100"
    ),
    Statement("Total of 2023", "SELECT sum(amount) FROM orders_2023"),
    Statement("Total of 2024", "SELECT sum(amuont) FROM ordres_2024"),
    Statement("Orders of 2024", "SELECT id, amuont FROM ordres_2024 ORDER BY id"),
    Statement("Revenue by year", "SELECT year, sum(amount) FROM orders GROUP BY year ORDER BY year"),
    Statement("Revenue in the year 2023", "SELECT sum(amount) FROM orders WHERE year = 2023"),
    Statement("What is the largest order?", "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 1"),
    Statement("What is the highest amount?", "SELECT max(amount) FROM orders"),
    Statement(
        "Which customer has the largest order?",
        "SELECT c.name, o.amount FROM customers c JOIN orders o ON o.customer_id = c.id"
        " WHERE o.amount = (SELECT max(amount) FROM orders)",
    ),
    Statement("Average order", "SELECT avg(amount) FROM orders"),
    Statement("Orders above average", "SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"),
    Statement(
        "How many orders has each customer?",
        "SELECT c.name, count(o.id) AS orders FROM customers c LEFT JOIN orders o ON o.customer_id = c.id"
        " GROUP BY c.id, c.name ORDER BY 2 DESC, 1",
    ),
    Statement(
        "Customers with more than one order",
        "SELECT customer_id FROM orders GROUP BY customer_id HAVING count(*) > 1 ORDER BY 1",
    ),
    Statement("Different cities", "SELECT city FROM customers GROUP BY city"),
    Statement("How many different cities are there?", "SELECT count(*) FROM (SELECT DISTINCT city FROM customers) t"),
    Statement("Customers from Berlin", "SELECT name, city FROM customers WHERE city = 'Berlin'"),
    Statement("Who lives in Berlin or Paris?", "SELECT name FROM customers WHERE city IN ('Berlin', 'Paris')"),
    Statement("Who is not from Berlin?", "SELECT name FROM customers WHERE city <> 'Berlin' OR city IS NULL"),
    Statement("Customers without a city", "SELECT name FROM customers WHERE city IS NULL"),
    Statement("Find O'Neil", "SELECT id FROM customers WHERE name = 'O''Neil'"),
    Statement("Which products start with t?", "SELECT name FROM products WHERE name LIKE 't%'"),
    Statement("Find the padded product", "SELECT id FROM products WHERE name = ' padded '"),
    Statement(
        "Tea and cup in one order",
        "SELECT order_id FROM lines WHERE product_id = 1 INTERSECT SELECT order_id FROM lines WHERE product_id = 2",
    ),
    Statement(
        "Orders with tea but no cup",
        "SELECT order_id FROM lines WHERE product_id = 1 EXCEPT SELECT order_id FROM lines WHERE product_id = 2",
    ),
    Statement(
        "Count of paid and unpaid",
        "SELECT 'paid', count(*) FROM orders WHERE status = 'paid'"
        " UNION ALL SELECT 'unpaid', count(*) FROM orders WHERE status = 'unpaid'",
    ),
    Statement(
        "Paid share",
        "SELECT 100.0 * sum(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) / count(*) AS paid_percent FROM orders",
    ),
    Statement(
        "Revenue by category",
        "SELECT p.category, sum(l.quantity * p.price) AS revenue FROM lines l JOIN products p ON p.id = l.product_id"
        " GROUP BY p.category ORDER BY revenue DESC",
    ),
    Statement(
        "Cities and what they bought",
        "SELECT DISTINCT c.city, p.name FROM customers c JOIN orders o ON o.customer_id = c.id"
        " JOIN lines l ON l.order_id = o.id JOIN products p ON p.id = l.product_id ORDER BY c.city, p.name",
    ),
    Statement(
        "All pairs of cities and products",
        "SELECT c.name, p.name FROM customers c CROSS JOIN products p",
    ),
    Statement("Pairs of customers of one city", "SELECT a.name, b.name FROM customers a JOIN customers b"
              " ON a.city = b.city AND a.id < b.id"),
    Statement(
        "Rank the orders",
        "SELECT id, rank() OVER (ORDER BY amount DESC) AS place FROM orders ORDER BY place",
    ),
    Statement(
        "Running total",
        "SELECT id, sum(amount) OVER (ORDER BY id) AS running FROM orders ORDER BY id",
    ),
    Statement(
        "Latest order of each customer",
        "SELECT customer_id, id FROM (SELECT customer_id, id, row_number() OVER (PARTITION BY customer_id"
        " ORDER BY ordered DESC, id DESC) AS n FROM orders) t WHERE n = 1 ORDER BY customer_id",
    ),
    Statement(
        "Totals with a common table expression",
        "WITH totals AS (SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id)"
        " SELECT c.name, t.total FROM totals t JOIN customers c ON c.id = t.customer_id ORDER BY t.total DESC",
    ),
    Statement(
        "Count to five", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n"
    ),
    Statement("Orders before 2024", "SELECT id FROM orders WHERE ordered < '2024-01-01'"),
    Statement("Orders of February", "SELECT id FROM orders WHERE ordered BETWEEN '2024-02-01' AND '2024-02-29'"),
    Statement("Newest order", "SELECT max(ordered) FROM orders"),
    Statement("What is one and one?", "SELECT 1 + 1 AS answer"),
    Statement("Say hello", "SELECT 'hello' AS greeting"),
    Statement("Is there a paid order?", "SELECT EXISTS (SELECT 1 FROM orders WHERE status = 'paid') AS found"),
    Statement("The status only", "SELECT status FROM orders WHERE status = 'paid'"),
    Statement("Name or unknown city", "SELECT name, coalesce(city, 'unknown') AS city FROM customers"),
    Statement("Length of names", "SELECT name, length(name) AS characters FROM customers ORDER BY characters"),
    Statement("Upper-case names", "SELECT upper(name) FROM customers"),
    Statement("Name and city together", "SELECT name || ' (' || coalesce(city, '?') || ')' FROM customers"),
    Statement("Unit prices", 'SELECT "Unit Price" FROM "Order Details"'),
    Statement("Prices by group", 'SELECT d."group", max(d."Unit Price") FROM "Order Details" d GROUP BY d."group"'),
    Statement("Größe", 'SELECT sum("Größe") AS "Summe" FROM "Order Details"'),
    Statement("A comment", "SELECT count(*) /* all of them */ FROM orders -- every order"),
    Statement("Page two", "SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 2"),
    Statement("有多少个客户？", "SELECT count(*) AS 客户数 FROM customers"),
    Statement("上海的客户", "SELECT name FROM customers WHERE city = '上海'"),
    Statement("有多少员工？", "SELECT count(*) FROM 员工"),
    Statement("行政有多少人？", "SELECT count(*) FROM 员工 e JOIN 部门 d ON e.部门编号 = d.编号 WHERE d.名称 = '行政'"),
    Statement("行政管理部有谁？", "SELECT 姓名 FROM 员工 WHERE 部门编号 = 1"),
    Statement(
        "每个部门的平均工资",
        "SELECT d.名称, avg(e.工资) AS 平均工资 FROM 部门 d JOIN 员工 e ON e.部门编号 = d.编号 GROUP BY d.名称",
    ),
    Statement(
        "没有员工的部门",
        "SELECT d.名称 FROM 部门 d LEFT JOIN 员工 e ON e.部门编号 = d.编号 WHERE e.编号 IS NULL",
    ),
    Statement("工资最高的员工", "SELECT 姓名 FROM 员工 WHERE 工资 = (SELECT max(工资) FROM 员工)"),
    Statement("不同的工资", "SELECT 工资, count(*) FROM 员工 GROUP BY 工资 ORDER BY 工资"),
    Statement("工资合计", "SELECT sum(工资) AS 合计（元） FROM 员工"),
    Statement("2024年入职的人", "SELECT 姓名, 入职 FROM 员工 WHERE 入职 >= '2024-01-01' ORDER BY 入职"),
    Statement("研发中心工资超过两万的人", "SELECT e.姓名 FROM 员工 e JOIN 部门 d ON e.部门编号 = d.编号"
              " WHERE d.名称 = '研发中心' AND e.工资 > 20000"),
    Statement("茶叶的价格", "SELECT price FROM products WHERE name = '茶叶'"),
]  # fmt: skip

BY_ENGINE = {
    "sqlite": [
        Statement("Orders by month", "SELECT strftime('%Y-%m', ordered) AS m, count(*) FROM orders GROUP BY m"),
        Statement("Year of each order", "SELECT id, CAST(strftime('%Y', ordered) AS INTEGER) FROM orders"),
        Statement("Days since", "SELECT id, julianday('2025-01-01') - julianday(ordered) FROM orders"),
        Statement("Any name of a city", "SELECT city, name, max(id) FROM customers GROUP BY city"),
        Statement("Names as a list", "SELECT group_concat(name, '; ') FROM customers"),
        Statement("Backticks", "SELECT `name` FROM `customers`"),
        Statement("Brackets", "SELECT [Unit Price] FROM [Order Details]"),
        Statement("Text in double quotes", 'SELECT id FROM customers WHERE city = "Berlin"'),
        Statement("Rows with an id", "SELECT rowid, name FROM customers"),
        Statement("忽略大小写", "SELECT id FROM customers WHERE city = 'berlin' COLLATE NOCASE"),
    ],
    "duckdb": [
        Statement("Orders by month", "SELECT date_trunc('month', ordered) AS m, count(*) FROM orders GROUP BY ALL"),
        Statement("Year of each order", "SELECT id, year(ordered) FROM orders"),
        Statement("Months as text", "SELECT strftime(ordered, '%Y-%m') AS m FROM orders"),
        Statement("All but the status", "SELECT * EXCLUDE (status) FROM customers"),
        Statement("From first", "FROM customers SELECT name"),
        Statement("Median", "SELECT median(amount) FROM orders"),
        Statement("Names as a list", "SELECT list(name ORDER BY id) FROM customers"),
        Statement("Qualify", "SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY amount DESC) <= 2"),
        Statement("Paid with a filter", "SELECT count(*) FILTER (WHERE status = 'paid') FROM orders"),
        Statement("按字符串匹配", "SELECT name FROM customers WHERE name ILIKE 'ann'"),
    ],
    "postgres": [
        Statement("Orders by month", "SELECT date_trunc('month', ordered)::date AS m, count(*) FROM orders GROUP BY 1"),
        Statement("Year of each order", "SELECT id, EXTRACT(YEAR FROM ordered) FROM orders"),
        Statement("Months as text", "SELECT to_char(ordered, 'YYYY-MM') AS m FROM orders"),
        Statement("One order per customer", "SELECT DISTINCT ON (customer_id) customer_id, id FROM orders ORDER BY customer_id, id"),
        Statement("Names as a list", "SELECT string_agg(name, '; ' ORDER BY id) FROM customers"),
        Statement("Median", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders"),
        Statement("Paid with a filter", "SELECT count(*) FILTER (WHERE status = 'paid') FROM orders"),
        Statement("Last order by a lateral join", "SELECT c.name, o.id FROM customers c CROSS JOIN LATERAL"
                  " (SELECT id FROM orders WHERE customer_id = c.id ORDER BY id DESC LIMIT 1) o"),
        Statement("Days since", "SELECT id, DATE '2025-01-01' - ordered FROM orders"),
        Statement("按字符串匹配", "SELECT name FROM customers WHERE name ILIKE 'ann'"),
    ],
    "mysql": [
        Statement("Orders by month", "SELECT DATE_FORMAT(ordered, '%Y-%m') AS m, COUNT(*) FROM orders GROUP BY m"),
        Statement("Year of each order", "SELECT id, YEAR(ordered) FROM orders"),
        Statement("Days since", "SELECT id, DATEDIFF('2025-01-01', ordered) FROM orders"),
        Statement("Names as a list", "SELECT GROUP_CONCAT(name ORDER BY id SEPARATOR '; ') FROM customers"),
        Statement("Backticks", "SELECT `Unit Price` FROM `Order Details`"),
        Statement("Text in double quotes", 'SELECT id FROM customers WHERE city = "Berlin"'),
        Statement("An escaped quote", "SELECT id FROM customers WHERE name = 'O\\'Neil'"),
        Statement("Paid orders", "SELECT SUM(IF(status = 'paid', 1, 0)) FROM orders"),
        Statement("Sums and their total", "SELECT status, SUM(amount) FROM orders GROUP BY status WITH ROLLUP"),
        Statement("Second page", "SELECT id FROM orders ORDER BY id LIMIT 2, 2"),
        Statement("Minus a negative number", "SELECT id, amount--1 FROM orders"),
        Statement("按字符串匹配", "SELECT name FROM customers WHERE name REGEXP '^a'"),
    ],
    "clickhouse": [
        Statement("Orders by month", "SELECT toStartOfMonth(ordered) AS m, count() FROM orders GROUP BY m"),
        Statement("Year of each order", "SELECT id, toYear(ordered) FROM orders"),
        Statement("Months as text", "SELECT formatDateTime(ordered, '%Y-%m') AS m FROM orders"),
        Statement("Days since", "SELECT id, dateDiff('day', ordered, toDate('2025-01-01')) FROM orders"),
        Statement("Names as a list", "SELECT groupArray(name) FROM customers"),
        Statement("Paid with a filter", "SELECT countIf(status = 'paid') FROM orders"),
        Statement("Median", "SELECT quantileExact(0.5)(amount) FROM orders"),
        Statement("Largest order of each customer", "SELECT customer_id, argMax(id, amount) FROM orders GROUP BY customer_id"),
        Statement("One order per customer", "SELECT customer_id, id FROM orders ORDER BY id LIMIT 1 BY customer_id"),
        Statement("An escaped quote", "SELECT id FROM customers WHERE name = 'O\\'Neil'"),
        Statement("A bound with a name", "WITH 25 AS bound SELECT id FROM orders WHERE amount > bound"),
        Statement("按字符串匹配", "SELECT name FROM customers WHERE name ILIKE 'ann'"),
    ],
}  # fmt: skip


def _quote_names_for_mysql(case: Statement) -> Statement:
    """Write names in backticks, also `lines`, a reserved word of MySQL."""
    return Statement(case.question, re.sub(r"\blines\b", "`lines`", case.sql.replace('"', "`")))


def _quote_names_for_clickhouse(case: Statement) -> Statement:
    """Write names of other letters than ASCII in double quotes."""
    parts = [
        re.sub(r"[^\W\d][\w（）]*", lambda word: word[0] if word[0].isascii() else f'"{word[0]}"', part)
        if number % 2 == 0
        else part
        for number, part in enumerate(re.split(r"""('[^']*'|"[^"]*")""", case.sql))
    ]
    return Statement(case.question, "".join(parts))


_QUOTE = {"mysql": _quote_names_for_mysql, "clickhouse": _quote_names_for_clickhouse}
STATEMENTS = {
    engine: [*map(_QUOTE[engine], EVERY_ENGINE), *own] if engine in _QUOTE else [*EVERY_ENGINE, *own]
    for engine, own in BY_ENGINE.items()
}
for _number, (_engines, _statements) in enumerate(UNUSUAL_SQL.items()):
    for _engine in _engines:
        _unusual = [Statement(f"Show list {_number}.{n}", sql) for n, sql in enumerate(_statements)]
        _is_quoted = len(_engines) > 1 and _engine in _QUOTE
        STATEMENTS[_engine] += map(_QUOTE[_engine], _unusual) if _is_quoted else _unusual
