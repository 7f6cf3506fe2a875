"""Python files of functions: added as tools, and reviewed again when they change."""

from pathlib import Path

from opposable.app.allowed_files import AllowedFiles
from opposable.app.stored_tools import open_allowed_files, save_tools
from opposable.app.tool_factory import create_builtin_library
from opposable.cli.errors import run_async
from opposable.cli.options import err, read_file, read_settings, warn
from opposable.cli.rendering import confirm, is_terminal
from opposable.domain.errors import BadInput
from opposable.domain.specs import FunctionToolSpec
from opposable.settings import Settings
from opposable.tools.python_file import create_file_specs


def read_function_file(
    settings: Settings, file: Path, *, assume_yes: bool = False
) -> tuple[list[FunctionToolSpec], dict[str, str]]:
    """Return the specs of a file's functions, after the person has allowed its code to run.

    With `assume_yes`, no question is asked.

    Returns:
        The specs, and the reason for each function that cannot become a tool.

    Raises:
        BadInput: The file cannot be read or loaded, or the person does not allow it.
    """
    source = read_file(file)
    path = file.resolve()  # after it is read: a loop of links raises RuntimeError before Python 3.13
    allowed_files = open_allowed_files()
    if not assume_yes and not allowed_files.is_allowed(path, source):
        if not is_terminal():
            raise BadInput(
                f"Adding {file} runs its code, now and in later commands. Review it, then pass --yes to allow it."
            )
        question = f"This runs the code of {path}, now and in later commands, until it changes. Allow it? [y/N] "
        if not confirm(err, question):
            raise BadInput(f"{file} is not allowed, and nothing of it has run.")
    specs, left_out = create_file_specs(path, source)
    allowed_files.allow(path, source)
    builtin = create_builtin_library(settings)
    taken = [spec.tool_id for spec in specs if builtin.get_spec(spec.tool_id) is not None]
    left_out |= dict.fromkeys(taken, "A built-in tool has this name. Rename the function.")
    return [spec for spec in specs if spec.tool_id not in taken], left_out


def review_changed_files() -> None:
    """Ask about allowed files that have changed since, and store their functions again.

    Without a terminal, or if the person declines, their tools are not available.
    """
    allowed_files = open_allowed_files()
    for path in _list_changed_files(allowed_files):
        question = f"{path} has changed. Run its code, now and in later commands, until it changes again? [y/N] "
        if is_terminal() and confirm(err, question):
            settings = read_settings()
            specs, left_out = read_function_file(settings, path, assume_yes=True)
            run_async(save_tools(settings, specs))
            for name, reason in left_out.items():
                warn(f"{name}: {reason}")
        else:
            warn(f"{path} has changed, so its tools are not available. Run: opposable tools add {path}")


def _list_changed_files(allowed_files: AllowedFiles) -> list[Path]:
    """Return the allowed files with another content. A missing file has nothing to review."""
    return [
        path
        for path in map(Path, allowed_files.read())
        if path.is_file() and not allowed_files.is_allowed(path, path.read_bytes())
    ]
