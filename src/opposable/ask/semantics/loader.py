"""Loads a semantic model from YAML in any of the three supported formats."""

from importlib.util import find_spec
from pathlib import Path

from opposable.ask.semantics.metricflow import parse_metricflow
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.semantics.ossie import parse_ossie
from opposable.ask.semantics.short_form import parse_short_form
from opposable.ask.semantics.yaml_reader import parse_yaml
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
    """Parse a semantic model.

    Args:
        text: The YAML.
        file: The file name for error messages.

    Raises:
        BadInput: The text is invalid. The message has the file, the line and the remedy.
    """
    if find_spec("yaml") is None or find_spec("sqlglot") is None:
        raise BadInput("Semantic models need the extra `ask`: pip install 'opposable[ask]'.")
    document = parse_yaml(text, Path(file).name)
    data = document.data
    if not isinstance(data, dict) or not data:
        raise BadInput(f"{document.file}, line 1: a semantic model is a mapping with {SUPPORTED_FORMATS}.")
    if "ontology" in data:
        raise BadInput(
            f"{document.file}, line 1: this is an Ossie ontology, which defines no tables: pass the Ossie "
            "core file (semantic_model: …) that maps them to a database."
        )
    parse = (
        parse_ossie if "semantic_model" in data else parse_metricflow if "semantic_models" in data else parse_short_form
    )
    return parse(document).model_copy(update={"file": Path(file)})
