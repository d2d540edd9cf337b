"""The help of a verb: what it needs first, what every verb takes last, and its exit codes."""

import re
from typing import Any

from typer.core import TyperCommand

_COMMON = ("--home", "--database", "--json", "--help")
_EXIT_CODES = "Exit codes: 0 yes; 1 the answer is no; 2 bad input; 3 something is missing here."


class VerbCommand(TyperCommand):
    """A verb that does something, in groups of options."""

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


def _section(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    if any(name in _COMMON for name in param.opts):
        return "Common options"
    return "Required options" if param.required else "Options"
