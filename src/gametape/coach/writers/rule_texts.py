"""The rules that the rule writer knows, by the kind of fault: what to do, and which tool helps with it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """`purpose` is what the first of `tools` that is at hand is good for; without one of them it is left out."""

    text: str
    purpose: str = ""
    tools: Sequence[str] = ()

    def in_words_of(self, names: Collection[str]) -> str:
        tool = next((tool for tool in self.tools if tool in names), "")
        return f"{self.text}; use `{tool}` to {self.purpose}" if tool else self.text


_SEE_DEFINITION = ("see how it is defined", ("jump", "search", "read"))
_RUN_IT = ("run the code after each change", ("shell",))
_CHECK_IT = ("see what is left", ("check", "shell"))
_SEE_FILE = ("see the lines as they are", ("read",))
_FIND_PATH = ("see which files there are", ("search", "read", "shell"))

EXCEPTIONS: Mapping[str, Rule] = {
    "NameError": Rule("define or import every name before the line that uses it", *_RUN_IT),
    "UnboundLocalError": Rule("give a local variable its value on every path before it is read", *_RUN_IT),
    "ImportError": Rule("import only names that the module really has", *_SEE_DEFINITION),
    "ModuleNotFoundError": Rule("import only modules that are installed or lie in the workspace", *_FIND_PATH),
    "AttributeError": Rule("use only attributes that the object really has", *_SEE_DEFINITION),
    "TypeError": Rule("pass the number and the kinds of arguments that the function takes", *_SEE_DEFINITION),
    "ValueError": Rule("handle values that a function does not accept before you pass them on", *_RUN_IT),
    "KeyError": Rule("handle keys that may be missing before you look them up", *_RUN_IT),
    "IndexError": Rule("handle empty and short sequences before you index them", *_RUN_IT),
    "ZeroDivisionError": Rule("handle a divisor of zero before you divide", *_RUN_IT),
    "RecursionError": Rule("a recursive function needs a case that ends it, and every call must come closer to it"),
    "StopIteration": Rule("handle the end of an iterator", *_RUN_IT),
    "FileNotFoundError": Rule("a path must exist before it is opened", *_FIND_PATH),
    "NotImplementedError": Rule("replace every stub that still raises with an implementation", *_SEE_FILE),
    "SyntaxError": Rule("what you write must be valid Python as a whole", *_RUN_IT),
    "IndentationError": Rule("keep the indentation of the lines around what you write", *_SEE_FILE),
    "TabError": Rule("indent with the characters that the file uses", *_SEE_FILE),
    "AssertionError": Rule("the code must do what its tests expect", "run them and read what they compare", ("shell",)),
    "": Rule("what you write must run without an error", *_RUN_IT),
}
"""By the class of an exception."""

VERDICTS: Mapping[str, Rule] = {
    "finished untested": Rule(
        "run the tests after the last change and before you finish", "run them", ("shell", "check")
    ),
}

TYPES: Mapping[str, Rule] = {
    "arg-type": Rule("pass arguments of the types that the function declares", *_SEE_DEFINITION),
    "call-arg": Rule("call a function with the arguments that its definition names", *_SEE_DEFINITION),
    "return-value": Rule("return what the annotation of the function promises", *_CHECK_IT),
    "return": Rule("return a value on every path of a function that promises one", *_CHECK_IT),
    "attr-defined": Rule("use only attributes that the class defines", *_SEE_DEFINITION),
    "name-defined": Rule("define or import every name that you use", *_CHECK_IT),
    "assignment": Rule("assign a variable only values of its declared type", *_CHECK_IT),
    "union-attr": Rule("rule out None before you use what may be None", *_CHECK_IT),
    "operator": Rule("use operators only between types that support them", *_CHECK_IT),
    "index": Rule("index only what can be indexed, with a key of the right type", *_CHECK_IT),
    "no-untyped-def": Rule("annotate the arguments and the result of every function", *_CHECK_IT),
    "override": Rule("a method keeps the signature of the one that it overrides", *_SEE_DEFINITION),
    "import-not-found": Rule("import only modules that are installed or lie in the workspace", *_FIND_PATH),
    "syntax": Rule("what you write must be valid Python as a whole", *_CHECK_IT),
    "": Rule("what you write must pass the type checker", *_CHECK_IT),
}
"""By the code of a type checker's finding."""

LINT: Mapping[str, Rule] = {
    "F401": Rule("import only what the file uses", *_CHECK_IT),
    "F811": Rule("define a name once", *_CHECK_IT),
    "F821": Rule("define or import every name that you use", *_CHECK_IT),
    "F841": Rule("leave out variables that nothing reads", *_CHECK_IT),
    "E501": Rule("keep lines as short as the project keeps them", *_CHECK_IT),
    "E711": Rule("compare with None by `is`", *_CHECK_IT),
    "E712": Rule("test a truth value itself, without a comparison", *_CHECK_IT),
    "E722": Rule("name the exceptions that you catch", *_CHECK_IT),
    "E741": Rule("give variables names that cannot be mistaken for digits", *_CHECK_IT),
    "E999": Rule("what you write must be valid Python as a whole", *_CHECK_IT),
    "I001": Rule("sort imports as the file sorts them", *_CHECK_IT),
    "B006": Rule("a default argument must not be a value that changes", *_CHECK_IT),
    "": Rule("what you write must pass the linter", *_CHECK_IT),
}
"""By the code of a linter's finding."""

EVENTS: Mapping[str, Rule] = {
    "malformed call": Rule("a call names one tool and gives its arguments as the tool's schema describes them"),
    "cut off": Rule("say less, so that the turn ends with a whole call"),
    "too many calls": Rule("one call in a turn is enough"),
    "call limit": Rule("this tool has been called as often as it may be; go on with another"),
    "constraint": Rule("keep to what is allowed and do without what the constraints forbid"),
    "tool timeout": Rule("a call must end soon; do less in one call"),
    "repetition": Rule("this call gave the same result already, so do something else"),
}
"""By the harness's event, in words."""

TOOL_ERRORS: Sequence[tuple[str, Rule]] = (
    (r"^edit: old does not occur", Rule("`edit` replaces text that stands in the file exactly so", *_SEE_FILE)),
    (r"^edit: old occurs \d+ times", Rule("`edit` needs a piece that occurs once; take more lines around the change")),
    (r"^edit: old and new are the same", Rule("an edit must change something")),
    (r"there is no |[Nn]o such file|does not exist", Rule("a path must exist before it is used", *_FIND_PATH)),
    (r"is no regular file|[Ii]s a directory", Rule("this takes the path of a file, not of a directory", *_FIND_PATH)),
    (r"outside|not allowed|forbidden|read-only", Rule("change only files that the task lets you change")),
)
"""By what a tool's answer says, the first that matches."""
