"""SQLite databases of the catalog tests."""

import sqlite3
from pathlib import Path

from opposable.sql.database import Database
from opposable.sql.factory import open_database


async def open_sqlite(folder: Path, *statements: str) -> Database:
    """Run statements on a SQLite file in `folder` and open it."""
    path = folder / "test.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return await open_database(str(path))


def build_many_tables() -> list[str]:
    """Build 250 tables: a chain from orders to suppliers among many unrelated tables."""
    statements = [
        "CREATE TABLE suppliers (supplier_id INTEGER PRIMARY KEY, company TEXT)",
        "CREATE TABLE products (product_id INTEGER PRIMARY KEY, supplier_id INTEGER REFERENCES suppliers(supplier_id), label TEXT)",
        "CREATE TABLE order_items (order_id INTEGER REFERENCES orders(order_id), product_id INTEGER REFERENCES products(product_id))",
        "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, placed DATE)",
        "CREATE TABLE 客户 (客户编号 INTEGER PRIMARY KEY, 客户名称 TEXT)",
        "CREATE TABLE 合同 (合同编号 INTEGER PRIMARY KEY, 客户编号 INTEGER REFERENCES 客户(客户编号), 金额 INTEGER)",
        "INSERT INTO suppliers VALUES (1, 'Exotic Liquids')",
    ]
    statements += [
        f"CREATE TABLE archive_{i} (archive_{i}_id INTEGER PRIMARY KEY, field_a TEXT, remark TEXT)" for i in range(244)
    ]
    return statements
