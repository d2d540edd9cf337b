r"""Grammars of turns that end in one well-formed call, in the EBNF that llguidance, xgrammar (vLLM) and llama.cpp read.

What such a grammar allows, the chat format can parse: numbers are finite, `\u` is never half of a surrogate pair, and
between tags no string holds the beginning of a tag (`<` can always be written `\u003c`). Rules that lead to characters
only become one token of a lexer, which takes the longest match: so a rule for text includes what ends the text.

The text before a call is short. A model that may write as much as it likes before the call it must make can spend the
whole turn on that, and a weak one does: nothing is forced then.
"""

import json
from collections.abc import Sequence

MAX_TEXT = 200
"""The characters that a turn may have before its call."""
_JSON = r"""object ::= "{" ws ( member ( ws "," ws member )* ws )? "}"
member ::= string ws ":" ws value
array ::= "[" ws ( value ( ws "," ws value )* ws )? "]"
value ::= object | array | string | number | "true" | "false" | "null"
escape ::= "\\" ( ["\\/bfnrt] | "u" ( [0-9a-cA-CefEF] hex | [dD] [0-7] ) hex hex )
number ::= "-"? ( "0" | [1-9] [0-9]{0,14} ) ( "." [0-9]{1,15} )? ( [eE] [-+]? [0-9]{1,2} )?
hex ::= [0-9a-fA-F]
ws ::= " "?
"""
_ANY_STRING = r"""string ::= "\"" ( [^"\\\x00-\x1F] | escape )* "\""
"""
_STRING_BETWEEN_TAGS = r"""string ::= "\"" ( [^"\\<\x00-\x1F] | escape | tagless )* ( open [t/]? )? "\""
tagless ::= open ( [^"\\<t/\x00-\x1F] | "t" [^"\\<o\x00-\x1F] | "/" [^"\\<t\x00-\x1F] | [t/]? escape )
open ::= "<" ( [t/]? "<" )*
"""
"""Without `<to` and `</t`, with which `<tool_call>`, `</tool_call>` and `</think>` begin."""


def fenced_grammar(names: Sequence[str]) -> str:
    """A little text without a fence in it, then a fenced call."""
    return (
        'root ::= opening call "\\n```"\n'
        'opening ::= ( text "\\n" )? "```tool\\n"\n'
        f'text ::= ( [^`] | "`" [^`] | "``" [^`] ){{0,{MAX_TEXT}}}\n' + _call(names, "arguments") + _JSON + _ANY_STRING
    )


def tagged_grammar(names: Sequence[str], opened: str, closed: str, field: str) -> str:
    """A little text without the first character of a tag, then a call between tags; without tags, the call alone."""
    if not opened:
        return "root ::= call\n" + _call(names, field) + _JSON + _ANY_STRING
    root = f"root ::= text {json.dumps(opened)} call {json.dumps(closed)}\ntext ::= [^{opened[0]}]{{0,{MAX_TEXT}}}\n"
    return root + _call(names, field) + _JSON + _STRING_BETWEEN_TAGS


def _call(names: Sequence[str], field: str) -> str:
    either = " | ".join(json.dumps(json.dumps(name)) for name in names)
    members = f'"\\"name\\"" ws ":" ws name ws "," ws "\\"{field}\\"" ws ":" ws object'
    return f'call ::= "{{" ws {members} ws "}}"\nname ::= {either}\n'
