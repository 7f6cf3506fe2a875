from pathlib import Path

import pytest

from opposable.ask.semantics.loader import load_semantic_model, parse_semantic_model
from opposable.ask.semantics.model import Join, Metric, ModelTable

OSSIE = """
version: 0.2.0.dev0
semantic_model:
  - name: shop
    datasets:
      - name: sales
        source: db.public.sales_2024
        primary_key: [id]
        fields:
          - name: net
            expression: {dialects: [{dialect: SNOWFLAKE, expression: x}, {dialect: ANSI_SQL, expression: gross - tax}]}
          - name: day
            expression: {dialects: [{dialect: ANSI_SQL, expression: day}]}
            datatype: Date
            ai_context: {synonyms: [日期]}
      - name: stores
        source: stores
    relationships:
      - {name: r, from: sales, to: stores, from_columns: [store_id], to_columns: [id]}
    metrics:
      - name: revenue
        expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(sales.net)}]}
        ai_context: {synonyms: [销售额]}
    custom_extensions:
      - vendor_name: OPPOSABLE
        data: '{"filters": {"big": "sales.gross > 10"}, "exclusions": {"void": "sales.void = 1"}, "default_filters": ["big"]}'
"""


def test_computed_fields_are_expanded_in_metrics():
    model = parse_semantic_model(OSSIE)
    assert model.metrics == {
        "revenue": Metric(id="revenue", expr="SUM((sales.gross - sales.tax))", synonyms=("销售额",))
    }
    assert model.tables["sales"] == ModelTable(id="sales", source="db.public.sales_2024", time="day", key=("id",))
    assert model.joins == (Join(many="sales", one="stores", on=(("store_id", "id"),)),)
    assert model.dimensions["day"].synonyms == ("日期",)
    assert (list(model.filters), list(model.exclusions), model.default_filters) == (["big"], ["void"], ("big",))


def test_the_time_of_a_dataset_is_in_ansi_sql():
    forms = "{dialects: [{dialect: SNOWFLAKE, expression: x}, {dialect: ANSI_SQL, expression: day}]}"
    model = parse_semantic_model(OSSIE.replace("{dialects: [{dialect: ANSI_SQL, expression: day}]}", forms))
    assert model.tables["sales"].time == "day"


def test_synonyms_without_a_value_are_none():
    model = parse_semantic_model(OSSIE.replace("{synonyms: [日期]}", "{synonyms: }"))
    assert model.dimensions["day"].synonyms == ()


SAMPLE = Path(__file__).parents[3].parent / "shared" / "data" / "text2sql" / "sample" / "semantic" / "tpcds.ossie.yaml"


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the public Ossie files are not installed")
def test_the_public_ossie_model_is_parsed():
    model = load_semantic_model(SAMPLE)
    assert (len(model.metrics), len(model.dimensions), len(model.joins)) == (5, 31, 4)
    assert model.metrics["total_sales"].synonyms == ("total revenue", "gross sales", "sales amount")
