"""Reads a semantic model from YAML, whichever of the three forms it is written in."""

from importlib.util import find_spec
from pathlib import Path

from opposable.ask.semantics.model import SemanticModel
from opposable.ask.semantics.yaml_reader import YamlDocument, parse_yaml
from opposable.domain.errors import BadInput

SUPPORTED_FORMATS = (
    "metrics, dimensions, filters and exclusions (the short form), semantic_model (Apache Ossie), "
    "or semantic_models (MetricFlow)"
)


def load_semantic_model(path: str | Path) -> SemanticModel:
    """The semantic model in the file at `path`.

    Raises:
        BadInput: there is no such file, or it cannot be understood; the sentence says file, line and what would be
            right.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"There is no file {file}: give a semantic model in YAML.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8 text: save it as UTF-8.") from None
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or 'it is no regular file'}.") from error
    return parse_semantic_model(text, file)


def parse_semantic_model(text: str, file: str | Path = "model.yaml") -> SemanticModel:
    """The semantic model written in `text`; `file` is what errors call it. Raises: as `load_semantics`."""
    if find_spec("yaml") is None or find_spec("sqlglot") is None:
        raise BadInput("Semantic models need the extra `ask`: pip install 'opposable[ask]'.")
    document = parse_yaml(text, Path(file).name)
    data = document.data
    if not isinstance(data, dict) or not data:
        raise BadInput(f"{document.file}, line 1: a semantic model is a mapping with {SUPPORTED_FORMATS}.")
    return _parse_document(document).model_copy(update={"file": Path(file)})


def _parse_document(document: YamlDocument) -> SemanticModel:
    data = document.data
    if "semantic_model" in data:
        from opposable.ask.semantics.ossie import parse_ossie

        return parse_ossie(document)
    if "semantic_models" in data:
        from opposable.ask.semantics.metricflow import parse_metricflow

        return parse_metricflow(document)
    if "ontology" in data:
        raise BadInput(
            f"{document.file}, line 1: this is an Ossie ontology, which names concepts and no tables: give the Ossie "
            "core file (semantic_model: …) that maps them to a database."
        )
    from opposable.ask.semantics.short_form import parse_short_form

    return parse_short_form(document)
