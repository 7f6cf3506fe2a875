import pytest

from opposable.ask.semantics.loader import load_semantic_model, parse_semantic_model
from opposable.domain.errors import BadInput

INVALID = {
    "metrics:\n  a: SUM(x)\nmetric: {}": "model.yaml, line 3: metric: is not a known field (did you mean metrics?).",
    "metrics:\n  a: {exp: SUM(x)}": "model.yaml, line 2: metrics.a.expr: is required.\n"
    "model.yaml, line 2: metrics.a.exp: is not a known field (did you mean expr?).",
    "metrics:\n  a: {expr: [1]}": "model.yaml, line 2: metrics.a.expr: must be text.",
    "metrics:\n  a: SUM(x)\n  a: SUM(y)": "model.yaml, line 3: a is defined twice: remove one of them.",
    "metrics:\n  a: SUM(x)\nfilters:\n  a: x = 1": "model.yaml, line 4: filters.a: the id a is already used in metrics "
    "(line 2): rename one of them.",
    "metrics: {a: SUM(x)}\njoins: [a = b]": "model.yaml, line 2: joins.0: 'a = b' is not a join: write many.column = "
    "one.column, such as orders.customer_id = customers.id (AND for more columns).",
    "metrics: &m {a: SUM(x)}\ndimensions: *m": "model.yaml, line 1: anchors and aliases (& and *) are not supported: "
    "repeat it.",
    "metrics: !!python/object:os.system {}": "model.yaml, line 1: tags (!) are not supported: write plain values.",
    "metrics: {a: [": "model.yaml, line 1: invalid YAML: ",
    "[1, 2]": "model.yaml, line 1: a semantic model is a mapping with metrics, ",
    "": "model.yaml, line 1: a semantic model is a mapping with metrics, ",
    "name: x": "model.yaml, line 1: it defines no metrics and no dimensions: ",
    "a: " * 40: "model.yaml, line 1: invalid YAML: ",
    "metrics: " + "[" * 40 + "]" * 40: "model.yaml, line 1: nested deeper than 24 levels.",
    "metrics: " + "[" * 9_000 + "]" * 9_000: "model.yaml is nested deeper than 24 levels.",
    "x" * 1_000_001: "model.yaml has 1,000,001 characters: at most 1,000,000 are allowed.",
    "version: " + "9" * 5_000: "model.yaml is not valid YAML: Exceeds the limit",
    "ontology: []": "model.yaml, line 1: ontology: is not a known field",
}


@pytest.mark.parametrize("text", INVALID, ids=lambda text: text[:40])
def test_an_invalid_model_is_reported_with_file_and_line(text):
    with pytest.raises(BadInput) as error:
        parse_semantic_model(text)
    assert str(error.value).startswith(INVALID[text])


def test_a_missing_file_is_reported():
    with pytest.raises(BadInput, match=r"`nowhere.yaml` does not exist. Pass the path"):
        load_semantic_model("nowhere.yaml")
