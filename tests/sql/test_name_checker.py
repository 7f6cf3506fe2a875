"""Wrong names are reported, and corrected only where one name can be meant."""

import pytest

from opposable.sql.name_checker import check_names
from opposable.sql.name_repair import repair_names
from opposable.sql.schema import Column, DatabaseSchema, Table
from opposable.sql.statement_guard import parse_safe_query


def build_table(name: str, *columns: str, schema: str = "") -> Table:
    return Table(name, tuple(Column(column, "TEXT") for column in columns), schema)


SHOP_SCHEMA = DatabaseSchema(
    (
        build_table("customers", "id", "name", "city", "first_name", "last_name"),
        build_table("orders", "id", "customer_id", "amount", "ordered_at"),
        build_table("order lines", "order_id", "unit price"),
        build_table("部门", "编号", "名称", "预算金额"),
        build_table("people", "id", "salary", schema="hr"),
        build_table("gens", "prénom"),
    )
)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    ("sql", "fixed", "corrections"),
    [
        ("SELECT ｎａｍｅ FROM customers", "SELECT name FROM customers", ["column ｎａｍｅ → name"]),
        ("SELECT c.Ｎａｍｅ FROM customers c", "SELECT c.name FROM customers c", ["column Ｎａｍｅ → name"]),
        ("SELECT first＿name FROM customers", "SELECT first_name FROM customers", ["column first＿name → first_name"]),
        ("SELECT name FROM ＣＵＳＴＯＭＥＲＳ", "SELECT name FROM customers", ["table ＣＵＳＴＯＭＥＲＳ → customers"]),
        ("SELECT prÉnom FROM gens", "SELECT prénom FROM gens", ["column prÉnom → prénom"]),
        (
            'SELECT order_id FROM "ｏｒｄｅｒ lines"',
            'SELECT order_id FROM "order lines"',
            ['table ｏｒｄｅｒ lines → "order lines"'],
        ),
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.ＣＵＳＴＯＭＥＲ_ID)",
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer_id)",
            ["column ＣＵＳＴＯＭＥＲ_ID → customer_id"],
        ),
        (
            "SELECT count（*） FROM customers，orders",
            "SELECT count(*) FROM customers,orders",
            ["full-width signs → ASCII"],
        ),
        ("SELECT name FROM customers WHERE city = 'nmae'", "SELECT name FROM customers WHERE city = 'nmae'", []),
    ],
)
def test_unambiguous_mistakes_are_corrected(dialect, sql, fixed, corrections):
    found = repair_names(sql, dialect, SHOP_SCHEMA)
    assert (found.problems, found.query.sql, list(found.corrections)) == ((), fixed, corrections)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (
            "SELECT fist_last_name FROM customers",
            "There is no column fist_last_name in customers. Did you mean last_name or first_name",
        ),
        ("SELECT nmae FROM customers", "There is no column nmae in customers. Did you mean name?"),
        ("SELECT name FROM hr.customers", "There is no table hr.customers. Did you mean customers?"),
        ("SELECT name FROM customer", "There is no table customer. Did you mean customers?"),
        ("SELECT 预算 FROM 部门", "There is no column 预算 in 部门. Did you mean 预算金额?"),
        (
            "SELECT zzz FROM customers",
            "There is no column zzz in customers. Columns: id, name, city, first_name, last_name.",
        ),
        ("SELECT amount FROM customers", "The table orders has a column amount: join it."),
        ("SELECT c.amount FROM customers c", "customers (alias c) has no column amount."),
        (
            "SELECT 1 FROM nothing_like_it",
            "There is no table nothing_like_it. Tables: customers, orders, order lines, 部门, hr.people, gens.",
        ),
        ("SELECT 1 FROM customers c JOIN orders o ON o.amount = c.amount", "customers (alias c) has no column amount."),
        ("SELECT 1 FROM customers c JOIN orders o ON c.amount = o.amount", "customers (alias c) has no column amount."),
        (
            'SELECT l.id FROM "order lines" l JOIN orders o ON o.id = l.order_id',
            "order lines (alias l) has no column id. orders (alias o) has it. Did you mean order_id?",
        ),
        ("SELECT a.id FROM customers x, orders y", "a in a.id is not a table or alias of this FROM, which has x, y."),
        ("SELECT CI_TY FROM customers", "There is no column CI_TY in customers. Did you mean city?"),
        ("SELECT firstname FROM customers", "There is no column firstname in customers. Did you mean first_name"),
        ("SELECT 预算_金额 FROM 部门", "There is no column 预算_金额 in 部门. Did you mean 预算金额?"),
        ('SELECT unit_price FROM "order lines"', "no column unit_price in order lines. Did you mean unit price?"),
        ("SELECT order_id FROM OrderLines", "There is no table OrderLines. Did you mean order lines"),
        ("SELECT id FROM orders_2", "There is no table orders_2. Did you mean orders"),
        (
            "SELECT c.amount FROM customers c, orders o",
            "customers (alias c) has no column amount. orders (alias o) has it.",
        ),
        ("SELECT x.amount FROM customers c, orders o", "which has c, o. amount is a column of o."),
        ("SELECT x.id FROM customers c, orders o", "which has c, o. id is a column of c and of o."),
        ("SELECT customers.name FROM customers c", "of this FROM, which has c. name is a column of c."),
        (
            "SELECT count(*) FROM orders o JOIN customers c ON c.customer_id = o.id",
            "customers (alias c) has no column customer_id. orders (alias o) has it.",
        ),
        (
            "SELECT 1 FROM orders o JOIN customers c ON lower(o.city) = lower(c.city)",
            "orders (alias o) has no column city. customers (alias c) has it.",
        ),
        ("SELECT q.b FROM (SELECT id AS a FROM orders) q", "q has no column b. Its columns: a."),
        ("SELECT b FROM (SELECT id AS a FROM orders)", "There is no column b in "),
        ("WITH x AS (SELECT id AS a FROM orders) SELECT zz FROM x", "There is no column zz in x."),
        ("SELECT id FROM orders UNION SELECT zz FROM customers", "There is no column zz in customers."),
        ("SELECT id FROM orders ORDER BY zzz", "There is no column zzz in orders."),
        ("SELECT count(*) FROM orders GROUP BY zzz", "There is no column zzz in orders."),
        ("SELECT * FROM orders JOIN customers USING (zzz)", "There is no column zzz in orders, customers."),
        ("SELECT zzz.* FROM orders", "zzz in zzz.* is not a table or alias"),
    ],
)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_other_mistakes_are_reported_with_the_existing_names(dialect, sql, sentence):
    found = repair_names(sql, dialect, SHOP_SCHEMA)
    assert any(sentence in problem.message for problem in found.problems), found.problems
    assert found.corrections == ()


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c.ID, NAME FROM Customers C",
        "SELECT id AS x FROM orders ORDER BY x",
        "SELECT amount * 2 AS twice FROM orders WHERE twice > 3",
        "SELECT x.n FROM (SELECT name AS n FROM customers) AS x",
        "WITH a(k) AS (SELECT id FROM orders), b AS (SELECT k FROM a) SELECT k FROM b",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
        "SELECT * FROM (SELECT * FROM customers) c WHERE c.city = 'x' AND last_name = 'y'",
        "SELECT (SELECT amount FROM orders o WHERE o.customer_id = c.id) FROM customers c",
        "SELECT hr.people.salary FROM hr.people",
        "SELECT people.salary FROM hr.people",
        "SELECT id FROM orders UNION SELECT id FROM customers ORDER BY id",
        "SELECT t.b FROM customers AS t(a, b)",
        "SELECT v.p FROM (VALUES (1, 2)) AS v(p, q)",
        "SELECT rowid FROM orders",
        "SELECT sum(amount) OVER w FROM orders WINDOW w AS (PARTITION BY customer_id)",
        "SELECT a.id FROM orders a JOIN (orders b JOIN customers c ON b.customer_id = c.id) ON a.id = b.id",
    ],
)
def test_correct_names_are_unchanged(dialect, sql):
    assert check_names(parse_safe_query(sql, dialect, SHOP_SCHEMA), SHOP_SCHEMA) == ()


def test_columns_of_a_table_function_may_have_its_name():
    query = parse_safe_query("SELECT json_each.key FROM orders, json_each(orders.amount)", "sqlite", SHOP_SCHEMA)
    assert check_names(query, SHOP_SCHEMA) == ()


def test_comments_of_sqlite_stay_and_names_after_them_are_corrected():
    found = repair_names("SELECT ｎame /* ｎame */ FROM customers -- all", "sqlite", SHOP_SCHEMA)
    assert found.query.sql == "SELECT name /* ｎame */ FROM customers -- all"


def test_double_quoted_text_is_text_in_sqlite_and_a_problem_in_duckdb():
    sql = 'SELECT name FROM customers WHERE city = "Paris"'
    assert check_names(parse_safe_query(sql, "sqlite", SHOP_SCHEMA), SHOP_SCHEMA) == ()
    (problem,) = check_names(parse_safe_query(sql, "duckdb", SHOP_SCHEMA), SHOP_SCHEMA)
    assert problem.message.endswith("Text belongs in single quotes, not double quotes.")


def test_names_near_a_json_path_that_sqlglot_cannot_write_are_checked():
    query = parse_safe_query("SELECT id, amount -> '$..k' FROM ordes", "duckdb", SHOP_SCHEMA)
    assert [problem.name for problem in check_names(query, SHOP_SCHEMA)] == ["ordes"]


def test_nothing_is_guessed_between_two_names():
    near = DatabaseSchema((build_table("t", "prénom", "PRÉNOM"), build_table("a_x", "id")))
    assert repair_names("SELECT prÉnom FROM t", "sqlite", near).corrections == ()
    both = DatabaseSchema((build_table("t", "id"), build_table("u", "price"), build_table("v", "price")))
    assert repair_names("SELECT t.price FROM t, u, v", "sqlite", both).corrections == ()


def test_a_repair_that_would_be_ambiguous_is_not_made():
    twice = DatabaseSchema((build_table("t", "label"), build_table("u", "label")))
    assert repair_names("SELECT ｌabel FROM t, u", "sqlite", twice).corrections == ()


POSTGRES_SCHEMA = DatabaseSchema(
    (
        build_table("Staff", "Id", "FullName"),
        build_table("Item", "id"),
        build_table("item", "id"),
        build_table("people", "id", schema="hr"),
        build_table("people", "id", schema="crm"),
        build_table("Notes", "id", schema="hr"),
    ),
    "public",
    "postgres",
)


@pytest.mark.parametrize(
    ("sql", "fixed", "message"),
    [
        ("SELECT FULLNAME FROM staff", 'SELECT "FullName" FROM "Staff"', ""),
        ("SELECT id FROM public.item", "SELECT id FROM public.item", ""),
        ("SELECT id FROM HR.notes", 'SELECT id FROM hr."Notes"', ""),
        ('SELECT id FROM "ITEM"', "", 'ITEM is not a table as PostgreSQL reads it: write "Item" or item.'),
        ("SELECT id FROM people", "", "people is not a table as PostgreSQL reads it: write hr.people or crm.people."),
        ("SELECT id FROM notes", 'SELECT id FROM hr."Notes"', ""),
    ],
)
def test_of_tables_the_case_the_quotes_and_the_only_schema_are_corrected_on_postgres(sql, fixed, message):
    found = repair_names(sql, "postgres", POSTGRES_SCHEMA)
    assert (found.query.sql, [problem.message for problem in found.problems]) == (
        fixed or sql,
        [message] if message else [],
    )
