"""The command `opposable`, also `python -m opposable`."""

import sys


def main() -> None:
    """Run the command line, or report which extra is missing."""
    try:
        from opposable.cli import main as run  # lazy: needs the extra "cli"

        run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "opposable":
            raise
        sys.exit(f'The command line needs the extra "cli" ({error.name} is missing): pip install "opposable[all]"')
    except KeyboardInterrupt:  # before the command began, or while it ended
        sys.exit(130)
    finally:
        # Python marks a KeyboardInterrupt that leaves an `exec` of text, as in the imports of data classes, and would
        # end by SIGINT in place of the exit code. The next `exec` removes the mark.
        exec("")  # noqa: S102


if __name__ == "__main__":
    main()
