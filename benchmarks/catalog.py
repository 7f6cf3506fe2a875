"""Measures the catalog: the recall of gold tables among 250, and matches among millions of values.

python benchmarks/catalog.py recall PATH/TO/text2sql [N]  # the folder with questions.jsonl and databases; every Nth question
python benchmarks/catalog.py lookup [VALUES]              # 2,000,000 by default
"""

import asyncio
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from opposable.ask.catalog import Catalog, CatalogLimits, open_catalog
from opposable.ask.catalog.schema_linking import SchemaLinker
from opposable.ask.catalog.value_index import ValueIndex
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
        catalog = merge_catalogs(db, own_catalog, catalogs)
        for question in [q for q in spider if q["db"] == db]:
            tables, columns = find_gold_names(question["gold_sql"], own_catalog.schema)
            text = " ".join([question["question"], question.get("evidence") or ""])
            for budget in TOKEN_BUDGETS:
                started = time.perf_counter()
                view = await catalog.select_schema(text, budget)
                seconds.append(time.perf_counter() - started)
                view_tables = {t.table.name.lower() for t in view.tables}
                view_columns = {(t.table.name.lower(), c.name.lower()) for t in view.tables for c in t.columns}
                results[budget].append(
                    (
                        len(tables & view_tables) / len(tables),
                        tables <= view_tables and columns <= view_columns,
                        view.token_count,
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
    tables: dict[str, Table] = {table.name.lower(): table for table in own_catalog.schema.tables}
    samples = {name: dict(columns) for name, columns in own_catalog.samples.items()}
    index = ValueIndex(None)
    sources = [own_catalog, *(other for name, other in all_catalogs.items() if name != db)]
    for source in sources:
        for table in source.schema.tables:
            if len(tables) < TABLE_COUNT and table.name.lower() not in tables:
                tables[table.name.lower()] = table
                samples[table.full_name] = dict(source.samples.get(table.full_name, {}))
    schema = DatabaseSchema(tuple(tables.values()), own_catalog.schema.default_schema, own_catalog.schema.dialect)
    for source in sources:
        for table in source.schema.tables:
            if tables.get(table.name.lower()) is table:
                for column in table.columns:
                    index.add_values(table.full_name, column.name, get_values(source, table.full_name, column.name))
    return Catalog(schema, samples, True, index, SchemaLinker(schema, samples, {}))


def get_values(source: Catalog, table: str, column: str) -> list[str]:
    """Return the values of one column of a catalog."""
    sql = "SELECT v.text FROM value v JOIN place p ON p.id = v.place WHERE p.owner = ? AND p.name = ? LIMIT 300"
    return [row[0] for row in source._index._fetch_all(sql, (table, column))]  # noqa: SLF001 - copies the index


FIRST_NAMES = (
    "Anna",
    "Bruno",
    "Carla",
    "David",
    "Elena",
    "Felix",
    "Greta",
    "Hugo",
    "Ida",
    "Jonas",
    "伟",
    "芳",
    "娜",
    "敏",
    "静",
)
NAME_STEMS = ("north", "harbour", "silver", "granite", "meadow", "falcon", "copper", "willow", "summit", "cedar")
CITIES = ("上海", "北京", "广州", "深圳", "成都", "杭州", "武汉", "西安")
TRADES = ("贸易", "科技", "物流", "食品", "建筑", "医药", "电子", "纺织")


def make_names(count: int) -> list[str]:
    """Make distinct English and Chinese names of people and companies."""
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    names: dict[str, None] = {}
    while len(names) < count:
        tail = "".join(rng.choice(letters) for _ in range(rng.randint(4, 9)))
        if rng.random() < 0.3:
            hanzi = "".join(chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(3))
            names[f"{rng.choice(CITIES)}{hanzi}{rng.choice(TRADES)}有限公司"] = None
        else:
            names[f"{rng.choice(FIRST_NAMES)} {tail.title()} {rng.choice(NAME_STEMS).title()} {rng.randint(1, 99)}"] = (
                None
            )
    return list(names)


async def measure_lookup(count: int) -> None:
    """Measure indexing values from DuckDB on disk, then matching questions that name some of them."""
    names = make_names(count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.duckdb"
        with duckdb.connect(str(path)) as connection:
            lines = Path(folder) / "names.csv"
            lines.write_text("\n".join(names), "utf-8")
            connection.execute(
                f"CREATE TABLE customers AS SELECT * FROM read_csv('{lines}', header=false, columns={{'name':'VARCHAR'}})"
            )
            connection.execute(
                "CREATE TABLE departments AS SELECT unnest(['行政管理部','研发部','Marketing','California']) AS title"
            )
        database = await open_database(str(path))
        started = time.perf_counter()
        catalog = await open_catalog(database, Path(folder), CatalogLimits(max_seconds=600))
        indexing_seconds = time.perf_counter() - started
        size = get_index_bytes(Path(folder))
        print(
            f"{await catalog.count_values()} values indexed in {indexing_seconds:.0f} s, index {size / 1e6:.0f} MB",
            end=", ",
        )
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB peak memory")
        started = time.perf_counter()
        reopened = await open_catalog(database, Path(folder), CatalogLimits(max_seconds=600))
        print(f"opened again in {time.perf_counter() - started:.2f} s")
        await reopened.close()
        some = random.Random(1).sample([name for name in names if name.isascii()], 50)
        await measure_matches(catalog, "exact", [f"What did {name} buy in May?" for name in some], some)
        typos = [
            f"{name.split()[0]} {swap_middle_letters(name.split()[1])} {' '.join(name.split()[2:])}" for name in some
        ]
        await measure_matches(catalog, "misspelt", [f"What did {name} buy in May?" for name in typos], some)
        chinese = random.Random(2).sample([name for name in names if "有限公司" in name], 50)
        await measure_matches(catalog, "Chinese exact", [f"{name}今年的采购额是多少？" for name in chinese], chinese)
        await measure_matches(catalog, "Chinese part", [f"{name[:7]}今年的采购额是多少？" for name in chinese], chinese)
        await measure_matches(catalog, "行政", ["行政部门有多少人？"] * 20, ["行政管理部"] * 20)
        await catalog.close()
        await database.close()


def get_index_bytes(folder: Path) -> int:
    """Return the bytes of the index in a folder."""
    return sum(file.stat().st_size for file in folder.glob("*.sqlite*"))


def swap_middle_letters(word: str) -> str:
    """Return the word with two letters in its middle swapped."""
    middle = len(word) // 2
    return word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]


async def measure_matches(catalog: Catalog, label: str, questions: list[str], expected_values: list[str]) -> None:
    times: list[float] = []
    found_count = 0
    for question, value in zip(questions, expected_values, strict=True):
        started = time.perf_counter()
        matches = await catalog.match_values(question)
        times.append((time.perf_counter() - started) * 1_000)
        found_count += value in [match.value for match in matches]
    times.sort()
    print(
        f"{label}: found {found_count} of {len(questions)}; {statistics.median(times):.1f} ms median, {times[-2]:.1f} ms p95"
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["recall", folder, *step]:
            asyncio.run(measure_recall(Path(folder), int(step[0]) if step else 1))
        case ["lookup", *count]:
            asyncio.run(measure_lookup(int(count[0]) if count else 2_000_000))
        case _:
            sys.exit(__doc__)
