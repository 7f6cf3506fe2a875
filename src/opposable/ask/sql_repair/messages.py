"""The message catalog of SQL repair: corrections that were made and requirements that a query misses."""

from collections.abc import Sequence

from opposable.domain.localized_text import LocalizedText

# corrections


def table_joined(table: str, column: str) -> LocalizedText:
    """Report a join added for a column."""
    return LocalizedText(f"{table} joined for {column}", f"为 {column} 连接了 {table}")


def part_removed(part: str) -> LocalizedText:
    """Report a removed table or column."""
    return LocalizedText(f"without {part}", f"去掉了 {part}")


def aggregate_of_all_rows(aggregate: str) -> LocalizedText:
    """Report an aggregate that became a subquery over all rows."""
    return LocalizedText(f"{aggregate} of all rows", f"{aggregate}（对全部行）")


def aggregate_condition_only(condition: str) -> LocalizedText:
    """Report a condition removed from WHERE because HAVING applies it to the aggregate."""
    return LocalizedText(f"{condition} of the aggregate alone", f"{condition} 只用于聚合结果")


def extreme_row_selected(aggregate: str) -> LocalizedText:
    """Report a MAX or MIN that became the row with that value."""
    return LocalizedText(f"{aggregate} → the row that has it", f"{aggregate} → 取到该值的那一行")


def group_by_extended(columns: str) -> LocalizedText:
    """Report columns added to GROUP BY."""
    return LocalizedText(f"GROUP BY {columns} too", f"GROUP BY 增加了 {columns}")


def union_merged() -> LocalizedText:
    """Report a UNION of single values that became a GROUP BY."""
    return LocalizedText("UNION of one value each → GROUP BY", "每个值各一段的 UNION → GROUP BY")


def intersection_built() -> LocalizedText:
    """Report two values of one column that became an INTERSECT."""
    return LocalizedText("two values of one column in one row → INTERSECT", "一行中的同一列要有两个值 → INTERSECT")


def aliases_separated(alias: str) -> LocalizedText:
    """Report an alias of several tables that was replaced by one alias each."""
    return LocalizedText(f"an alias for each table that was called {alias}", f"为每个叫 {alias} 的表各取一个别名")


def syntax_normalized() -> LocalizedText:
    """Report a quoted alias or a sign replaced by its SQL form."""
    return LocalizedText("an alias or a sign put as SQL has it", "别名或符号改成了 SQL 的写法")


# requirements of the question that the query misses; a model reads the English text


def groups_missing() -> LocalizedText:
    """Report a missing GROUP BY."""
    return LocalizedText(
        "the question asks for each, and the SQL groups by nothing", "问题要求分别统计，SQL 却没有分组"
    )


def average_missing() -> LocalizedText:
    """Report a missing AVG."""
    return LocalizedText("the question asks for an average, and the SQL has no AVG", "问题要求平均值，SQL 却没有 AVG")


def count_missing() -> LocalizedText:
    """Report a missing COUNT."""
    return LocalizedText(
        "the question asks how many there are, and the SQL counts nothing", "问题问的是数量，SQL 却没有计数"
    )


def total_missing() -> LocalizedText:
    """Report a missing SUM."""
    return LocalizedText("the question asks for a total, and the SQL has no SUM", "问题要求总计，SQL 却没有 SUM")


def order_missing() -> LocalizedText:
    """Report a missing ORDER BY, MAX or MIN."""
    return LocalizedText(
        "the question asks for the first of an order, and the SQL neither sorts nor takes MAX or MIN of all rows",
        "问题要求排名最前的，SQL 却既没有排序，也没有取全部行的 MAX 或 MIN",
    )


def exclusion_missing() -> LocalizedText:
    """Report a missing NOT IN or another exclusion."""
    return LocalizedText(
        "the question asks for what is not, and the SQL excludes nothing: use NOT IN with a subquery",
        "问题问的是“没有”的情况，SQL 却没有排除任何数据",
    )


def comparison_missing() -> LocalizedText:
    """Report a missing comparison with a bound."""
    return LocalizedText(
        "the question compares with a bound, and the SQL does not", "问题与一个界限比较，SQL 却没有比较"
    )


def value_not_in_question(condition: str) -> LocalizedText:
    """Report a condition on a value that the question does not mention."""
    return LocalizedText(f"the question does not say {condition}", f"问题没有说到 {condition}")


def question_repeated() -> LocalizedText:
    """Report a query that selects only what its own conditions fix."""
    return LocalizedText(
        "the SQL selects only what the question says already, not what it asks for",
        "SQL 只选出了问题里已经说明的内容，而不是所问的内容",
    )


def column_of_outer_query(tables: Sequence[str], column: str) -> LocalizedText:
    """Report a column of a subquery that only the outer query has."""
    return LocalizedText(f"{' and '.join(tables)} has no column {column}", f"{'、'.join(tables)} 没有列 {column}")


def several_numbers(row_count: int, column_count: int) -> LocalizedText:
    """Report a result with more than the one number the question asks for."""
    return LocalizedText(
        f"the question asks for one number, and {row_count} rows of {column_count} columns came",
        f"问题只要一个数，结果却有 {row_count} 行 {column_count} 列",
    )


def values_not_used(values: Sequence[str]) -> LocalizedText:
    """Report values of the question that the query does not look for."""
    quoted_values = [repr(value) for value in values]
    return LocalizedText(
        f"the question names {', '.join(quoted_values)}, and the SQL does not look for it",
        f"问题提到了 {'、'.join(quoted_values)}，SQL 却没有查找它",
    )
