"""Plain data crosses unchanged and exact; any other bytes are a WireError, soon."""

import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import random
import struct
import tracemalloc
import uuid
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.verify.in_sandbox import wire
from gametape.verify.in_sandbox.wire import Unsendable, WireError, decode, encode
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.replay.transcript import StandIn, write_frame
from tests.patience import effort

ZONES = st.one_of(
    st.none(),
    st.just(datetime.UTC),
    st.integers(-1439, 1439).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes))),
    st.just(datetime.timezone(datetime.timedelta(hours=2), "there")),
    st.sampled_from(["Europe/Paris", "America/New_York", "UTC"]).map(zoneinfo.ZoneInfo),
)
HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(st.characters(exclude_categories=())),
    st.binary(),
    st.dates(),
    st.times(timezones=ZONES),
    st.datetimes(timezones=ZONES),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.uuids(),
    st.sampled_from([..., NotImplemented, int, str, type(None), ValueError, KeyboardInterrupt, decimal.Decimal]),
    st.sampled_from([pathlib.PurePosixPath("a/b"), pathlib.PureWindowsPath("c:\\x"), pathlib.Path("/tmp/é")]),
    st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
)


@st.composite
def keys(draw: st.DrawFn, depth: int = 2) -> object:
    if depth and draw(st.integers(0, 3)) == 0:
        inner = st.lists(keys(depth - 1), max_size=3)
        return draw(st.one_of(inner.map(tuple), inner.map(frozenset)))
    return draw(HASHABLE)


@st.composite
def plain(draw: st.DrawFn, depth: int = 3) -> object:
    if not depth or draw(st.booleans()):
        return draw(st.one_of(HASHABLE, st.binary().map(bytearray)))
    inner = plain(depth - 1)
    items = st.lists(inner, max_size=4)
    return draw(
        st.one_of(
            items,
            items.map(tuple),
            st.dictionaries(keys(), inner, max_size=4),
            st.lists(keys(), max_size=4).map(set),
            st.lists(keys(), max_size=4).map(frozenset),
            st.builds(slice, inner, inner, inner),
            st.builds(collections.deque, items, st.one_of(st.none(), st.integers(0, 5))),
        )
    )


def assert_same(left: object, right: object) -> None:
    """Equal and of the same types all the way down. Sets may be in another order."""
    assert type(left) is type(right)
    assert left == right
    if isinstance(left, dict):
        assert_same(list(left.items()), list(right.items()))
    elif isinstance(left, slice):
        assert_same((left.start, left.stop, left.step), (right.start, right.stop, right.step))
    elif isinstance(left, (list, tuple, collections.deque)):
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, (set, frozenset)):
        by_key = {item: item for item in right}
        for item in left:
            assert_same(item, by_key[item])
    else:
        assert repr(left) == repr(right)


@settings(max_examples=150, deadline=None)
@given(plain())
def test_plain_data_comes_out_as_it_went_in(value: object) -> None:
    assert_same(value, decode(encode(value)))


@pytest.mark.parametrize("value", [math.nan, -0.0, math.inf, complex(math.nan, -math.inf), decimal.Decimal("sNaN12")])
def test_numbers_that_equality_does_not_tell_apart(value: object) -> None:
    assert repr(decode(encode(value))) == repr(value)


def test_a_deep_structure_needs_no_recursion() -> None:
    value: list[object] = []
    for _ in range(1900):
        value = [value]
    found, depth = decode(encode(value)), 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == 1900
    for _ in range(200):
        value = [value]
    with pytest.raises(Unsendable, match="nested deeper"):
        encode(value)


def test_a_cycle_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(Unsendable):
        encode(value)


def test_dict_views_stay_what_they_are() -> None:
    data = {"a": 1, "b": 2}
    assert decode(encode(data.keys())) == data.keys()
    assert decode(encode(data.items())) == data.items()
    assert list(decode(encode(data.values()))) == [1, 2]


class Colour(enum.IntEnum):
    RED = 3


class Word(enum.StrEnum):
    YES = "yes"


Point = collections.namedtuple("Point", "x y")


class LyingInt(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __index__(self) -> int:
        return 99

    __int__ = __index__

    def bit_length(self) -> int:
        return 1


class LyingStr(str):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "the right answer"

    def encode(self, *args: str) -> bytes:
        return b"the right answer"


class LyingDict(dict):
    def items(self):
        return [("right", "answer")]

    def __iter__(self):
        return iter(["right"])

    def __len__(self) -> int:
        return 1


class LyingList(list):
    def __iter__(self):
        return iter(["right"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, 3),
        (Word.YES, "yes"),
        (Point(1, 2), (1, 2)),
        (LyingInt(5), 5),
        (LyingStr("wrong"), "wrong"),
        (LyingDict(a=1, b=2), {"a": 1, "b": 2}),
        (LyingList([1, 2, 3]), [1, 2, 3]),
        ([LyingInt(5), {LyingStr("k"): LyingList([LyingInt(1)])}], [5, {"k": [1]}]),
    ],
)
def test_a_subclass_is_reduced_to_its_real_data(value: object, plain: object) -> None:
    assert_same(decode(encode(value)), plain)


def test_the_order_of_an_ordered_dict_is_its_own() -> None:
    value = collections.OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert list(decode(encode(value))) == ["b", "a"]


class Plain(enum.Enum):
    RED = 1


@pytest.mark.parametrize("value", [object(), Plain.RED, open, pytest, [1, {2: object()}], memoryview(b"")])
def test_what_is_not_plain_data_is_refused_by_name(value: object) -> None:
    with pytest.raises(Unsendable, match="is not plain data"):
        encode(value)


def test_mutables_are_numbered_alike_on_both_sides() -> None:
    value = (1, [[2], {"a": {3}}], bytearray(b"x"), ({}, [collections.deque([[4]])]))
    sent: list[object] = []
    received: list[object] = []
    decode(encode(value, None, sent), None, received)
    assert sent[0] is value[1]
    assert len(sent) == len(received) == 9
    for one, other in zip(sent, received, strict=True):
        assert_same(one, other)


def number(value: int) -> bytes:
    return b"i" + struct.pack(">q", value)


def length(value: int) -> bytes:
    out = bytearray()
    wire._count(out, value)
    return bytes(out)


COLLIDING = [7 + index * (2**61 - 1) for index in range(20_000)]


def raw_set(values: list[int]) -> bytes:
    return b"<" + length(len(values)) + b"".join(encode(value) for value in values)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"?",
        b"NN",
        b"i123",
        b"s\x05ab",
        b"s\x02\xff\xff",
        b"[\xff\xff\xff\xff\x7f",
        b"[\xff\xff\xff\x7f",
        b"[\x02N",
        b"<\x01[\x00",
        b"{\x01[\x00N",
        b"{\x02" + number(1) + b"N" + number(1) + b"N",
        b"<\x02" + number(1) + b"f" + struct.pack(">d", 1.0),
        b"rNNN",
        b"r" + number(1) * 2 + number(0),
        b"qN" + number(1),
        b"q" + number(-1) + b"[\x00",
        b"t\x04eval",
        b"t\x02os",
        b"V\xff(\x00",
        b"V\x00(\x01b\x0a1234567890",
        b"V\x05(\x01s\x0b/etc/passwd",
        b"V\x05(\x01s\x09../../etc",
        b"V\x06(\x01s\x03abc",
        b"V\x07(\x02" + number(1) + number(0),
        b"X\x00N",
        b"l\x01N",
        b"(\x01" * 5000 + b"N",
        b"I" + length(200_000) + b"\x01" * 200_000,
        raw_set(COLLIDING),
        b"[" + length(1_500_000) + b"<\x00" * 1_500_000,
        bytes(wire.MOST_BYTES + 1),
    ],
    ids=range(32),
)
def test_garbage_is_a_wire_error_at_once(data: bytes) -> None:
    def refuse() -> None:
        with pytest.raises(WireError):
            decode(data)

    assert effort(refuse) < 500


def test_a_small_frame_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_MEMORY", 16 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="memory"):
            decode(b"[" + length(100_000) + b"<\x00" * 100_000)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def only_wire_errors(data: bytes) -> None:
    with contextlib.suppress(WireError):
        decode(data, lambda kind, payload: (kind, payload))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    only_wire_errors(data)


@settings(max_examples=150, deadline=None)
@given(plain(), st.randoms(use_true_random=False))
def test_damaged_frames(value: object, chance: random.Random) -> None:
    data = bytearray(encode(value))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
        if not data:
            break
    only_wire_errors(bytes(data))


@pytest.mark.slow
def test_many_random_frames_of_real_tags() -> None:
    chance = random.Random(5)
    tags = b"NTFE!iIfcsbBt[({<>r:qklvVX\x00\x01\x02\x03"
    for _ in range(200_000):
        only_wire_errors(bytes(chance.choices(tags, k=chance.randint(1, 40))))


def test_uuid_and_zone_are_whole() -> None:
    zone = zoneinfo.ZoneInfo("Europe/Paris")
    when = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zone, fold=1)
    found = decode(encode((uuid.UUID(int=5), when, fractions.Fraction(1, 3))))
    assert found[1].fold == 1
    assert found[1].tzinfo.key == "Europe/Paris"
    assert found[1].utcoffset() == when.utcoffset()


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (collections.defaultdict(list, a=1), list),
        (datetime.datetime(2024, 5, 6, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), None),
    ],
)
def test_a_value_around_a_stand_in_is_read_as_its_parts_and_written_as_it_was(value, part):
    plain = encode([value])
    assert encode(decode(plain, lax=True)) == plain
    around = plain.replace(encode(part or value.tzinfo), write_frame(StandIn(7, None)))
    assert around != plain
    with pytest.raises(WireError):
        decode(around, StandIn)
    (read,) = decode(around, StandIn, lax=True)
    assert type(read) is Unbuilt
    assert write_frame([read]) == around
