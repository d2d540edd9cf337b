"""Turns that end in one well-formed call, in the EBNF that vLLM (xgrammar) and llama.cpp read."""

import json
from collections.abc import Sequence

_JSON = r"""object ::= "{" ws ( member ( ws "," ws member )* ws )? "}"
member ::= string ws ":" ws value
array ::= "[" ws ( value ( ws "," ws value )* ws )? "]"
value ::= object | array | string | number | "true" | "false" | "null"
string ::= "\"" ( [^"\\\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" hex hex hex hex ) )* "\""
number ::= "-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?
hex ::= [0-9a-fA-F]
ws ::= " "?
"""


def fenced_grammar(names: Sequence[str]) -> str:
    """Text without a fence in it, then a fenced call."""
    return (
        'root ::= ( text "\\n" )? "```tool\\n" call "\\n```"\n'
        'text ::= ( [^`] | "`" [^`] | "``" [^`] )*\n' + _call(names, "arguments") + _JSON
    )


def tagged_grammar(names: Sequence[str], opened: str, closed: str, field: str) -> str:
    """Text without the first character of a tag in it, then a call between tags; without tags, the call alone."""
    text = f"text ::= [^{opened[0]}]*\n" if opened else ""
    root = f"root ::= {'text ' if opened else ''}{json.dumps(opened)} call {json.dumps(closed)}\n"
    return root + text + _call(names, field) + _JSON


def _call(names: Sequence[str], field: str) -> str:
    either = " | ".join(json.dumps(json.dumps(name)) for name in names)
    members = f'"\\"name\\"" ws ":" ws name ws "," ws "\\"{field}\\"" ws ":" ws object'
    return f'call ::= "{{" ws {members} ws "}}"\nname ::= {either}\n'
