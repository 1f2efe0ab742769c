"""Dataclasses that are quick to import: what depends on a class is compiled on its first call, the rest is shared.

    from combdiff.records import dataclass          in place of      from dataclasses import dataclass

The package has some three hundred dataclasses, for which Python's own decorator compiles six functions each: that took
more than half of the time to import it. Of these functions only `__init__` depends on the class for its speed; the
others are here, for all classes. Fields, their options, `replace` and `fields` are those of Python's decorator, which
makes them; type checkers see that one alone.

Invariant: a class behaves as Python's decorator makes it, with its options `frozen`, `eq` and `repr`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
        """The class with the methods of a dataclass; without a class, a decorator."""
        if cls is None:
            return lambda decorated: dataclass(decorated, frozen=frozen, eq=eq, repr=repr)
        own = frozenset(cls.__dict__)
        standard(init=False, repr=False, eq=False)(cls)
        for name, method in _methods(cls, fields(cls), frozen, eq, repr).items():
            if name not in own or (name == "__hash__" and cls.__hash__ is None):
                setattr(cls, name, method)
        return cls


def _methods(cls: type, parts: tuple[Field[Any], ...], frozen: bool, eq: bool, repr: bool) -> dict[str, Any]:
    methods: dict[str, Any] = {"__init__": _Init(cls, frozen)}
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if repr:
        methods["__repr__"] = _representation([part.name for part in parts if part.repr])
    if eq:
        compared = _values([part.name for part in parts if part.compare])
        methods |= {"__eq__": _equality(compared), "__hash__": _hash(compared) if frozen else None}
    return methods


class _Init:
    """The `__init__` of a class, which puts the compiled one in its place where it is first looked up."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self.cls = cls
        self.frozen = frozen

    def __get__(self, instance: object, owner: type) -> Any:
        made: Any = _init(self.cls, fields(self.cls), self.frozen)
        type.__setattr__(self.cls, "__init__", made)
        return made.__get__(instance, owner)


def _init(cls: type, parts: tuple[Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """The function that takes the fields as arguments; what is frozen is set past the class's own `__setattr__`."""
    scope: dict[str, Any] = {"_MISSING": MISSING, "_set": object.__setattr__}
    taken, named, lines = ["self"], list[str](), list[str]()
    for part in parts:
        value = part.name
        if part.default is not MISSING:
            scope[f"_{value}"] = part.default
        elif part.default_factory is not MISSING:
            scope[f"_{value}"] = part.default_factory
            made = f"_{value}()"
            value = f"{made} if {part.name} is _MISSING else {part.name}" if part.init else made
        elif not part.init:
            continue
        if part.init:
            default = f"=_{part.name}" if part.default is not MISSING else "" if value == part.name else "=_MISSING"
            (named if part.kw_only else taken).append(part.name + default)
        elif part.default is not MISSING:
            continue  # the class has it
        lines.append(f" _set(self, {part.name!r}, {value})" if frozen else f" self.{part.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    arguments = ", ".join([*taken, *(["*", *named] if named else [])])
    exec(f"def __init__({arguments}):\n" + ("\n".join(lines) or " pass"), scope)
    made_init: Callable[..., None] = scope["__init__"]
    made_init.__qualname__ = f"{cls.__qualname__}.__init__"
    made_init.__annotations__ = {part.name: part.type for part in parts if part.init} | {"return": None}
    return made_init


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of the fields of those names."""
    match names:
        case []:
            return lambda self: ()
        case [name]:
            one = attrgetter(name)
            return lambda self: (one(self),)
    return attrgetter(*names)


def _equality(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    return __eq__


def _hash(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(compared(self))

    return __hash__


def _representation(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
