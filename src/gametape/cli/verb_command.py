"""The help of a verb: what it needs first, what every verb takes last, and its exit codes."""

import re
from pathlib import Path
from typing import Any, get_args

from typer.core import TyperCommand, TyperGroup

from gametape.cli.failure import close_matches

_COMMON = ("--home", "--database", "--json", "--help")
_EXIT_CODES = "Exit codes: 0 yes; 1 the answer is no; 2 bad input; 3 something is missing here."


class CommandGroup(TyperGroup):
    """A verb with commands of its own."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Refuse a name that is none as an unknown verb is refused: with the nearest one, or else with all."""
        known = self.list_commands(ctx)
        if args[0] not in known:
            meant = close_matches(args[0], known) or f"; there are {', '.join(known)}"
            ctx.fail(f"no such command: {ctx.info_name} {args[0]}{meant}")
        return super().resolve_command(ctx, args)


class VerbCommand(TyperCommand):
    """A verb that does something, in groups of options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an empty name of a file, which would mean the present directory."""
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        params: list[Any] = list(self.params)
        for param in params:
            value = given.get(param.name)
            if _names_files(param) and "" in (value if isinstance(value, list | tuple) else [value]):
                ctx.fail(f"Invalid value for {param.get_error_hint()}: an empty name")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {
            "Arguments": [],
            "Required options": [],
            "Options": [],
            "Common options": [],
        }
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                sections[_section(param)].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The exit codes, where the verb has none of its own to tell."""
        if not re.search(r"\bexits?\b", self.help or "", re.IGNORECASE):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(_EXIT_CODES)
        super().format_epilog(ctx, formatter)


def _names_files(param: Any) -> bool:
    annotation = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    return Path in (annotation, *get_args(annotation))


def _section(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    if any(name in _COMMON for name in param.opts):
        return "Common options"
    return "Required options" if param.required else "Options"
