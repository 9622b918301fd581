"""A command line that cannot be read, answered in one line."""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

INSTALLING = 'pip install --constraint constraints.txt --editable ".[book]"'


class Commands(TyperGroup):
    """All commands; whatever they are given wrongly ends with exit code 2 and one line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command as typer does, but explain in a line where typer draws a box."""
        given = (args, prog_name, complete_var, False, windows_expand_args)
        if not standalone_mode:
            return super().main(*given, **extra)
        try:
            code = super().main(*given, **extra)
        except typer.TyperException as error:
            # Of a call without any argument, which is shown the help, there is nothing to say.
            if message := explanation(error):
                print(f"error: {message}", file=sys.stderr)
            code = error.exit_code
        except ModuleNotFoundError as error:
            if str(error.name).startswith("msstab"):
                raise
            print(f"error: {error.name} is not installed; {INSTALLING}", file=sys.stderr)
            code = 2
        sys.exit(code)


def explanation(error: typer.TyperException) -> str:
    """Return what was given, what is allowed, and where all of it is listed; may be empty."""
    message = " ".join(_message(error).split())
    context = getattr(error, "ctx", None)
    if not message or context is None:
        return message
    return f"{message}{' See' if message.endswith('?') else '; see'} {context.command_path} --help"


def _message(error: typer.TyperException) -> str:
    option = getattr(error, "param", None)
    faults: list[dict[str, Any]] = getattr(
        error.__cause__, "errors", list
    )()  # pydantic's, of a value
    if faults and option is not None:
        return f"{option.opts[0]} {faults[0]['input']}: {_lower(faults[0]['msg'])}"
    return _lower(error.format_message().rstrip("."))


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
