"""Exceptions that both sides know by name: the builtin ones and those of the standard library.

A reader gets classes only from these tables, and only subclasses of Exception: nothing that ends a process and no
outcome of a test framework can be named. Every other class belongs to one side.
"""

from __future__ import annotations

import builtins
import importlib
import sys

from .wire import WireError

_ERRORS_OF_LIBRARY = """
    argparse: ArgumentError ArgumentTypeError
    asyncio: QueueEmpty QueueFull InvalidStateError IncompleteReadError LimitOverrunError
    binascii: Error Incomplete
    concurrent.futures: BrokenExecutor InvalidStateError
    configparser: Error NoSectionError DuplicateSectionError DuplicateOptionError NoOptionError ParsingError
        MissingSectionHeaderError InterpolationError InterpolationDepthError InterpolationMissingOptionError
        InterpolationSyntaxError
    copy: Error
    csv: Error
    ctypes: ArgumentError
    dataclasses: FrozenInstanceError
    decimal: DecimalException Clamped InvalidOperation DivisionByZero Inexact Rounded Subnormal Overflow Underflow
        FloatOperation
    email.errors: MessageError MessageParseError HeaderParseError
    graphlib: CycleError
    http.client: HTTPException InvalidURL BadStatusLine IncompleteRead
    http.cookies: CookieError
    inspect: ClassFoundException EndOfBlock
    io: UnsupportedOperation
    ipaddress: AddressValueError NetmaskValueError
    json: JSONDecodeError
    locale: Error
    lzma: LZMAError
    pickle: PickleError PicklingError UnpicklingError
    queue: Empty Full
    re: error
    shutil: Error SameFileError SpecialFileError ReadError
    sqlite3: Error Warning DatabaseError DataError IntegrityError InterfaceError InternalError NotSupportedError
        OperationalError ProgrammingError
    ssl: SSLError
    statistics: StatisticsError
    struct: error
    subprocess: SubprocessError CalledProcessError TimeoutExpired
    tarfile: TarError ReadError
    threading: BrokenBarrierError
    tokenize: TokenError
    tomllib: TOMLDecodeError
    urllib.error: URLError HTTPError
    xml.etree.ElementTree: ParseError
    xml.parsers.expat: ExpatError
    zipfile: BadZipFile LargeZipFile
    zlib: error
    zoneinfo: ZoneInfoNotFoundError
"""


def _library_errors() -> dict[str, str]:
    """Module by `module:name`. No module is imported before it is needed."""
    modules: dict[str, str] = {}
    module = ""
    for word in _ERRORS_OF_LIBRARY.split():
        if word.endswith(":"):
            module = word[:-1]
        else:
            modules[f"{module}:{word}"] = module
    return modules


_BUILTIN = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind.__name__ == name
}
_LIBRARY = _library_errors()


def error_class(name: object) -> type[Exception]:
    """The exception class of a name that came over the wire."""
    if type(name) is not str or (name not in _BUILTIN and name not in _LIBRARY):
        raise WireError("an exception that has no such name")
    if name in _BUILTIN:
        return _BUILTIN[name]
    imported = getattr(importlib.import_module(_LIBRARY[name]), name.partition(":")[2], None)
    if not (isinstance(imported, type) and issubclass(imported, Exception)):
        raise WireError(f"{name}: this Python has no such exception")
    return imported


def error_name(kind: type) -> str | None:
    """The name of exactly this class, if both sides know it."""
    if _BUILTIN.get(kind.__name__) is kind:
        return kind.__name__
    for name, module in _LIBRARY.items():
        if getattr(sys.modules.get(module), name.partition(":")[2], None) is kind:
            return name
    return None
