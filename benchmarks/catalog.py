"""Measures the catalog: the recall of gold tables among 250.

python benchmarks/catalog.py PATH/TO/text2sql [N]  # the folder with questions.jsonl and databases; every Nth question
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from opposable.ask.catalog.catalog import Catalog, open_catalog
from opposable.ask.catalog.schema_view import estimate_tokens
from opposable.sql.factory import open_database
from opposable.sql.schema import DatabaseSchema, Table

TOKEN_BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)
TABLE_COUNT = 250


def find_gold_names(sql: str, schema: DatabaseSchema) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the tables and columns that a gold query reads."""
    known = {t.name.lower(): {c.name.lower(): c.type for c in t.columns} for t in schema.tables}
    tree = sqlglot.parse_one(sql, dialect=schema.dialect)
    names = {column.lower() for columns in known.values() for column in columns}
    for column in list(tree.find_all(exp.Column)):
        if column.this.quoted and not column.table and column.name.lower() not in names:
            column.replace(exp.Literal.string(column.name))
    tables = {t.name.lower() for t in tree.find_all(exp.Table) if t.name.lower() in known}
    try:
        full = qualify(tree, schema=known, dialect=schema.dialect, validate_qualify_columns=False)
    except Exception:  # noqa: BLE001 - a query that cannot be qualified counts for its tables only
        return tables, set()
    aliases = {t.alias_or_name.lower(): t.name.lower() for t in full.find_all(exp.Table)}
    qualified_columns = {(aliases.get(c.table.lower(), ""), c.name.lower()) for c in full.find_all(exp.Column)}
    return tables, {(table, column) for table, column in qualified_columns if column in known.get(table, ())}


async def measure_recall(folder: Path, step: int) -> None:
    """Measure how often a schema view of 250 tables contains the tables and columns of the gold SQL."""
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
    spider = [q for q in questions if (folder / q["set"] / f"{q['db']}.sqlite").exists()][::step]
    names = list(dict.fromkeys((q["set"], q["db"]) for q in spider))
    opened = {db: await open_database(str(folder / of / f"{db}.sqlite")) for of, db in names}
    catalogs = {db: await open_catalog(database) for db, database in opened.items()}
    results: dict[int, list[tuple[float, float, int]]] = {budget: [] for budget in TOKEN_BUDGETS}
    seconds: list[float] = []
    for db, own_catalog in catalogs.items():
        merged = merge_catalogs(db, own_catalog, catalogs)
        for question in [q for q in spider if q["db"] == db]:
            tables, columns = find_gold_names(question["gold_sql"], own_catalog.schema)
            text = " ".join([question["question"], question.get("evidence") or ""])
            for budget in TOKEN_BUDGETS:
                started = time.perf_counter()
                view = await merged.select_schema(text, budget)
                seconds.append(time.perf_counter() - started)
                view_tables = {t.table.name.lower() for t in view.tables}
                view_columns = {(t.table.name.lower(), c.name.lower()) for t in view.tables for c in t.columns}
                results[budget].append(
                    (
                        len(tables & view_tables) / len(tables),
                        tables <= view_tables and columns <= view_columns,
                        estimate_tokens(view.to_ddl()),
                    )
                )
    print(
        f"{len(spider)} questions, {TABLE_COUNT} tables, {statistics.median(seconds) * 1_000:.0f} ms per question (median)"
    )
    print("budget | tokens used | gold tables found | questions with every gold table and column")
    for budget, rows in results.items():
        means = [statistics.mean(row[i] for row in rows) for i in range(3)]
        print(f"{budget} | {means[2]:.0f} | {means[0]:.1%} | {means[1]:.1%}")


def merge_catalogs(db: str, own_catalog: Catalog, all_catalogs: dict[str, Catalog]) -> Catalog:
    """Merge a catalog with tables of other databases, up to 250 tables with distinct names."""
    tables: dict[str, Table] = {}
    samples: dict[str, Mapping[str, Sequence[str]]] = {}
    for source in [own_catalog, *(other for name, other in all_catalogs.items() if name != db)]:
        for table in source.schema.tables:
            if len(tables) < TABLE_COUNT and table.name.lower() not in tables:
                tables[table.name.lower()] = table
                samples[table.full_name] = source.samples.get(table.full_name, {})
    schema = DatabaseSchema(tuple(tables.values()), own_catalog.schema.default_schema, own_catalog.schema.dialect)
    return Catalog(schema, samples, {})


if __name__ == "__main__":
    match sys.argv[1:]:
        case [folder, *step]:
            asyncio.run(measure_recall(Path(folder), int(step[0]) if step else 1))
        case _:
            sys.exit(__doc__)
