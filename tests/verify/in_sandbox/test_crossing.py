"""What crosses between tests and code: objects with data, classes that tests derive, objects of the test."""

import collections
import dataclasses
import datetime
import io
import pickle
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from gametape.verify.in_sandbox import proxy
from tests.verify.in_sandbox.shop import load
from tests.verify.in_sandbox.worker_process import serving, write_code

CODE = {
    "forms.py": """
        import abc, collections, dataclasses, datetime, enum, json, os

        class Point(collections.namedtuple("Point", "x y")):
            @property
            def size(self):
                return self.x + self.y

        class Row(dict):
            def rename(self, old, new):
                self[new] = self.pop(old)
                return self

        class Zone(datetime.tzinfo):
            def utcoffset(self, moment):
                return datetime.timedelta(hours=2)
            def dst(self, moment):
                return None
            def tzname(self, moment):
                return "here"

        class Level(enum.IntEnum):
            LOW = 1
            HIGH = 2

        class Field:
            def __init__(self, name):
                self.name = name
            def __eq__(self, other):
                return Condition(self.name, other)

        class Condition:
            def __init__(self, name, value):
                self.name, self.value = name, value
            def __call__(self, row):
                return row[self.name] == self.value

        class Shape(abc.ABC):
            unit = "m"
            def __init__(self, side):
                self.side = side
            @abc.abstractmethod
            def area(self):
                ...
            def report(self):
                return f"{self.area()} {self.unit}"
            @classmethod
            def of(cls, text):
                return cls(int(text))

        def moment():
            return datetime.datetime(2024, 1, 2, 3, tzinfo=Zone())

        def field(name):
            return Field(name)

        def everywhere(rows, condition):
            return [row for row in rows if condition(row)]

        def nested():
            row = Row(a=1)
            row["self"] = row
            return row

        def describe(value):
            kind = [base.__name__ for base in (dict, tuple, collections.abc.Mapping) if isinstance(value, base)]
            return kind, hasattr(value, "missing"), getattr(value, "name", None)

        def fill(target, items):
            for key, value in items:
                target[key] = value
            return target

        def spy(target, names):
            found = []
            for name in names:
                try:
                    found.append((name, repr(getattr(target, name))))
                except Exception as error:
                    found.append((name, type(error).__name__))
            return found

        def tamper(target, name, value):
            setattr(target, name, value)

        def read(stream):
            return stream.read()

        def call(function, *args):
            result = function(*args)
            return result, list(args)

        def names(value):
            return [field.name for field in dataclasses.fields(value)]
    """
}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root: Path = tmp_path_factory.mktemp("code")
    write_code(root, CODE)
    classes = ["Point", "Row", "Zone", "Level", "Field", "Condition", "Shape"]
    with serving() as sock:
        proxy.install_proxy(sock, ["forms"], [f"forms:{name}" for name in classes], [str(root)])
        yield load("forms")
    sys.meta_path.pop(0)
    sys.modules.pop("forms")


def test_a_named_tuple_is_a_tuple_and_its_class(forms: Any) -> None:
    point = forms.Point(1, 2)
    assert isinstance(point, tuple)
    assert type(point) is forms.Point
    assert point == (1, 2)
    assert point == (1, 2)
    assert hash(point) == hash((1, 2))
    assert {(1, 2): "found"}[point] == "found"
    assert (point.x, point.size, point[1], len(point), point._replace(x=5)) == (1, 3, 2, 2, (5, 2))
    first, second = point
    assert (first, second) == (1, 2)
    assert repr(point) == "Point(x=1, y=2)"


def test_a_dict_of_the_code_changes_on_both_sides(forms: Any) -> None:
    row = forms.Row(a=1)
    row["b"] = 2
    assert row.rename("a", "c") is row
    assert dict(row) == {"b": 2, "c": 1}
    assert row == {"b": 2, "c": 1}
    assert isinstance(row, Mapping)
    row.update(d=4)
    del row["b"]
    assert list(row.items()) == [("c", 1), ("d", 4)]
    assert forms.Row(row) == row
    itself = forms.nested()
    assert itself["self"] is itself


def test_times_with_a_zone_of_the_code(forms: Any) -> None:
    moment = forms.moment()
    assert type(moment) is datetime.datetime
    assert moment == datetime.datetime(2024, 1, 2, 1, tzinfo=datetime.UTC)
    assert moment.tzname() == "here"
    assert moment.isoformat() == "2024-01-02T03:00:00+02:00"


def test_members_of_an_enumeration(forms: Any) -> None:
    assert forms.Level.LOW is forms.Level(1)
    assert [level.name for level in forms.Level] == ["LOW", "HIGH"]
    assert forms.Level.HIGH == 2
    assert forms.Level.HIGH > 1
    assert isinstance(forms.Level.HIGH, int)


def test_a_comparison_that_gives_an_object_has_no_truth(forms: Any) -> None:
    condition = forms.field("a") == 3
    assert type(condition) is forms.Condition
    assert forms.everywhere([{"a": 3}, {"a": 4}], condition) == [{"a": 3}]
    with pytest.raises(TypeError, match="neither true nor false"):
        assert forms.field("a") == 3


def test_a_class_of_a_test_overrides_what_the_code_calls(forms: Any) -> None:
    class Square(forms.Shape):  # type: ignore[misc]
        def __init__(self, side: int) -> None:
            super().__init__(side)
            self.seen: list[str] = []

        def area(self) -> int:
            return int(self.side**2)

        def report(self) -> str:
            return "square " + super().report()

        @classmethod
        def of(cls, text: str) -> Any:
            return super().of(text.strip())

    square = Square.of(" 3 ")
    assert isinstance(square, forms.Shape)
    assert type(square) is Square
    assert square.report() == "square 9 m"
    assert square.seen == []
    with pytest.raises(TypeError, match="abstract"):
        type("Nothing", (forms.Shape,), {})(1)


def test_an_object_of_a_test_is_used_by_the_code(forms: Any) -> None:
    class Record(NamedTuple):
        name: str

    class Table(dict[str, int]):
        name = "table"

        def __setitem__(self, key: str, value: int) -> None:
            super().__setitem__(key.upper(), value)

    assert forms.describe(Record("a")) == (["tuple"], False, "a")
    table = Table(a=1)
    assert forms.describe(table) == (["dict", "Mapping"], False, "table")
    assert forms.fill(table, [("b", 2)]) is table
    assert table == {"a": 1, "B": 2}
    assert forms.read(io.StringIO("text")) == "text"
    fake = mock.Mock()
    fake.read.return_value = 5
    assert forms.read(fake) == 5
    fake.read.assert_called_once_with()
    counts = collections.defaultdict(int, a=1)
    assert forms.fill(counts, [("b", 2)]) is counts
    assert counts == {"a": 1, "b": 2}
    assert forms.names(dataclasses.make_dataclass("Person", ["age", "size"])(1, 2)) == ["age", "size"]


def test_what_a_callback_changes_is_changed_for_the_code(forms: Any) -> None:
    assert forms.call(lambda rows: rows.append(3), [1]) == (None, [[1, 3]])


def test_an_object_of_the_code_can_be_pickled(forms: Any) -> None:
    assert pickle.loads(pickle.dumps(forms.Point(1, 2))) == (1, 2)


class Guarded:
    """Has something to hide."""

    visible = 1

    def check(self) -> bool:
        return True


def test_code_cannot_get_from_an_object_to_its_test(forms: Any) -> None:
    names = ["__class__", "__init__", "__globals__", "__module__", "__subclasses__", "check", "visible", "_gametape_x"]
    seen = dict(forms.spy(Guarded(), names))
    assert seen["visible"] == "1"
    assert seen["check"].startswith("<function")
    assert {name: seen[name] for name in ("__globals__", "__subclasses__", "_gametape_x")} == dict.fromkeys(
        ("__globals__", "__subclasses__", "_gametape_x"), "AttributeError"
    )
    assert "in_sandbox.test_crossing" not in str(seen)


def test_code_cannot_change_what_a_test_checks(forms: Any) -> None:
    guarded = Guarded()
    for name, value in (("check", 1), ("pytestmark", 1), ("__class__", int), ("visible", print), ("__eq__", 1)):
        with pytest.raises((AttributeError, TypeError)):
            forms.tamper(guarded, name, value)
    fake = mock.Mock()
    for name in ("assert_called_once", "called", "call_count", "return_value", "side_effect", "mock_calls"):
        with pytest.raises(AttributeError):
            forms.tamper(fake, name, True)
    assert guarded.check() is True
    assert not fake.called


def test_what_could_run_code_for_the_worker_is_refused(forms: Any, request: pytest.FixtureRequest) -> None:
    for value in (request, sys._getframe(), pytest, request.config, sys.meta_path[0]):
        with pytest.raises(TypeError, match="shared mode"):
            forms.describe(value)
