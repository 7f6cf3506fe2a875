"""Loads a semantic model from YAML: in the short form, or in a format that is written in the short form first."""

from importlib.util import find_spec
from pathlib import Path

from opposable.ask.semantics.metricflow import convert_metricflow
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.semantics.ossie import convert_ossie
from opposable.ask.semantics.yaml_reader import YamlDocument, parse_yaml, validate_yaml
from opposable.domain.errors import BadInput

SUPPORTED_FORMATS = (
    "metrics, dimensions, filters and exclusions (the short form), semantic_model (Apache Ossie), "
    "or semantic_models (MetricFlow)"
)


def load_semantic_model(path: str | Path) -> SemanticModel:
    """Load the semantic model in a file.

    Raises:
        BadInput: The file is missing or invalid. The message has the file, the line and the remedy.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"`{file}` does not exist. Pass the path of a semantic model in YAML.") from None
    except UnicodeDecodeError:
        raise BadInput(f"`{file}` is not UTF-8 text. Save it as UTF-8.") from None
    except OSError as error:
        raise BadInput(f"Cannot read `{file}`: {error.strerror or 'not a regular file'}.") from error
    return parse_semantic_model(text, file)


def parse_semantic_model(text: str, file: str | Path = "model.yaml") -> SemanticModel:
    """Parse a semantic model; errors name the file.

    Raises:
        BadInput: The text is invalid. The message has the file, the line and the remedy.
    """
    if find_spec("yaml") is None or find_spec("sqlglot") is None:
        raise BadInput("Semantic models need the extra `ask`: pip install 'opposable[ask]'.")
    document = parse_yaml(text, Path(file).name)
    data = document.data
    if not isinstance(data, dict) or not data:
        raise BadInput(f"{document.file}, line 1: a semantic model is a mapping with {SUPPORTED_FORMATS}.")
    if "semantic_model" in data:
        document = convert_ossie(document)
    elif "semantic_models" in data:
        document = convert_metricflow(document)
    model = validate_yaml(SemanticModel, document.data, document, ())
    _check_ids(model, document)
    document.lines.update({("joins", join.text): document.get_line(("joins", i)) for i, join in enumerate(model.joins)})
    return model.model_copy(update={"document": document})


def _check_ids(model: SemanticModel, document: YamlDocument) -> None:
    """Reject a model without terms, and an id of two sections: an intent names them in one field."""
    if not model.metrics and not model.dimensions:
        raise document.build_error((), "it defines no metrics and no dimensions: add at least one metric with an expr.")
    section_by_id: dict[str, str] = {}
    for section, term in model.iter_terms():
        other = section_by_id.setdefault(term.id, section)
        if other != section:
            line = document.get_line((other, term.id))
            problem = f"the id {term.id} is already used in {other} (line {line}): rename one of them."
            raise document.build_error((section, term.id), problem)
