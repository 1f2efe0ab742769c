"""Dataclasses of ours beside Python's own: made of the same text, they do the same."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from combdiff import records

DECORATORS: dict[str, Any] = {"ours": records.dataclass, "Python's": dataclasses.dataclass}


def made(dataclass: Any) -> dict[str, Any]:
    """Classes with every option and kind of field that the package uses."""

    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2

    @dataclass(frozen=True)
    class Named(Point):
        name: str = dataclasses.field(default="p", compare=False)
        tags: list[str] = dataclasses.field(default_factory=list, repr=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError(self.x)

    @dataclass
    class Open:
        values: dict[str, int] = dataclasses.field(default_factory=dict)
        count: int = dataclasses.field(default=0, kw_only=True)
        seen: list[int] = dataclasses.field(init=False, default_factory=list)

    @dataclass(frozen=True, eq=False, repr=False)
    class Plain:
        x: int

        def __repr__(self) -> str:
            return f"<{self.x}>"

    @dataclass(frozen=True)
    class Hashed:
        x: int

        def __hash__(self) -> int:
            return 7

    class Derived(Named):
        def __init__(self) -> None:
            super().__init__(5, name="derived")

    @dataclass
    class Empty:
        pass

    return {cls.__name__: cls for cls in (Point, Named, Open, Plain, Hashed, Derived, Empty)}


USES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "repr": lambda c: [
        repr(c["Point"](1)),
        repr(c["Named"](1, tags=["a"])),
        repr(c["Open"](count=3)),
        repr(c["Plain"](1)),
    ],
    "equal": lambda c: [
        c["Point"](1) == c["Point"](1, 2),
        c["Point"](1) == c["Point"](1, 3),
        c["Point"](1) == c["Named"](1),
        c["Named"](1, name="a") == c["Named"](1, name="b"),
        c["Plain"](1) == c["Plain"](1),
        c["Open"]() == c["Open"](),
        c["Empty"]() == c["Empty"](),
    ],
    "hash": lambda c: [hash(c["Point"](1)) == hash((1, 2)), hash(c["Hashed"](1)), c["Open"].__hash__],
    "late hash": lambda c: hash(c["Open"]()),
    "factory": lambda c: c["Open"]().seen is c["Open"]().seen,
    "set": lambda c: setattr(c["Point"](1), "x", 2),
    "delete": lambda c: delattr(c["Point"](1), "x"),
    "set what is open": lambda c: setattr(c["Open"](), "count", 2),
    "too few": lambda c: c["Point"](),
    "not by place": lambda c: c["Open"]({}, 3),
    "checked": lambda c: c["Named"](-1),
    "derived": lambda c: (c["Derived"]().x, c["Derived"]().name),
    "replace": lambda c: repr(dataclasses.replace(c["Named"](1), y=4)),
    "fields": lambda c: [(f.name, f.init, f.repr, f.compare) for f in dataclasses.fields(c["Named"])],
    "asdict": lambda c: dataclasses.asdict(c["Open"]({"a": 1})),
    "match": lambda c: [cls.__match_args__ for cls in c.values()],
    "signature": lambda c: [str(inspect.signature(c[name])).replace("<factory>", "…") for name in ("Point", "Plain")],
    "copy": lambda c: repr(copy.deepcopy(c["Named"](1))),
}


@pytest.mark.parametrize("use", USES)
def test_our_dataclasses_do_what_pythons_do(use: str) -> None:
    def outcome(classes: dict[str, Any]) -> Any:
        try:
            return USES[use](classes)
        except (TypeError, ValueError, dataclasses.FrozenInstanceError) as error:
            return type(error), str(error)

    assert outcome(made(DECORATORS["ours"])) == outcome(made(DECORATORS["Python's"]))


@records.dataclass(frozen=True)
class Kept:
    x: int


def test_an_object_that_was_not_made_by_init_is_whole() -> None:
    assert pickle.loads(pickle.dumps(Kept(3))) == Kept(3)


def test_methods_are_compiled_when_they_are_first_called() -> None:
    @records.dataclass
    class Late:
        """Without a docstring Python's decorator asks for the signature."""

    assert not inspect.isfunction(Late.__dict__["__init__"])
    Late()
    assert inspect.isfunction(Late.__dict__["__init__"])
