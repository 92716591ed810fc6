"""Tells if two processes are in the same state: a digest of everything that can be reached from one.

Two processes with one digest do the same with every next input, so the explorer goes on from one of them only. What is
reached is all: attributes, containers, arrays, closures, and the frames of greenlets and coroutines that wait. Left out
is what decides nothing: metrics, logs, locks, and the classes and code that all processes share. The order in which a
dict or set was filled is left out as well.
"""

import asyncio
import hashlib
import itertools
import operator
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache, cached_property
from threading import Event, Lock, Thread
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import greenlet
import msgspec
import numpy as np
import prometheus_client.metrics
import structlog

from extender.planner.framework.answers import Causes
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from muster.api.base import Wire


class Version(int):
    """A number that is only compared with others like it: a state knows it by where it was met first."""

    __slots__ = ()

    def __add__(self, other: int) -> "Version":
        """A later one."""
        return Version(int(self) + other)


_PLAIN, _WIRE, _KEPT, _SHARED, _VALUE, _OBJECT, _VERSION = range(7)
"""How a type is walked: written down; written down once; walked once for all; by its name; inside, each time it is met;
inside, once; by where it was met first."""
_KEPT_TYPES = (PodRecord, PodClass)
"""What is made anew where something of it changes, so that one walk of it does for all."""
MOST_KEPT = 20_000
"""Texts that are kept of each kind: objects whose text is kept live as long as it."""
_PLAIN_TYPES = (str, bytes, int, float, bool, complex, type(None), Enum)
_SHARED_TYPES = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    prometheus_client.metrics.MetricWrapperBase,
    type(structlog.get_logger()),
    type(Lock()),
    Thread,
    Event,
    msgspec.json.Decoder,
    np.dtype,
    Causes,  # the words for why a node does not fit, by the order in which they were first needed
    asyncio.BaseEventLoop,  # its timers and tasks are known by those who made them
    WeakKeyDictionary,  # what these have is held by others, or was until a moment ago
    WeakValueDictionary,
)


class Walk:
    """One walk; `without` are attributes that are not followed: class ("" is any) and name."""

    def __init__(self, without: AbstractSet[tuple[str, str]]) -> None:
        self._without = without
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []
        self._versions: dict[int, int] = {}
        self._out: list[str] = []
        self.parts: list[str] | None = None
        """Each piece with its path, if a list was put here: what tells two states apart."""

    def digest(self, root: Any) -> bytes:
        """Walk from here."""
        self._go(root, "")
        return hashlib.blake2b("\0".join(self._out).encode("utf-8", "surrogateescape"), digest_size=12).digest()

    def _add(self, text: str, path: str) -> None:
        self._out.append(text)
        if self.parts is not None:
            self.parts.append(f"{path} = {text}")

    def _go(self, one: Any, path: str) -> None:
        kind = type(one)
        group = _GROUPS.get(kind)
        if group is None:
            group = _GROUPS[kind] = _group_of(one)
        if group == _PLAIN:
            self._add(f"{kind.__name__} {one!r}", path)
        elif group == _WIRE:
            self._add(_text_of(one), path)
        elif group == _KEPT:
            self._add(self._kept_text(one), path)
        elif group == _SHARED:
            self._add(getattr(one, "__qualname__", kind.__name__), path)
        elif group == _VERSION:
            self._add(f"version {self._versions.setdefault(one, len(self._versions))}", path)
        else:
            known = self._seen.get(id(one))
            if known is not None:
                self._add(f"again {known}", path)
                return
            self._kept.append(one)  # so that no other object gets its id
            if group != _VALUE:
                self._seen[id(one)] = len(self._seen)
            self._inside(one, path)

    def _kept_text(self, one: Any) -> str:
        key = id(one), getattr(one, "slot", None)  # which a record is given later
        known = _KEPT_TEXTS.get(key)
        if known is None:
            if len(_KEPT_TEXTS) >= MOST_KEPT:
                _KEPT_TEXTS.clear()
            walk = Walk(self._without)
            walk._inside(one, "")
            text = hashlib.blake2b("\0".join(walk._out).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
            known = _KEPT_TEXTS[key] = (one, f"{type(one).__name__} {text}")
        return known[1]

    def _inside(self, one: Any, path: str) -> None:
        kind = type(one)
        inside = _INSIDE.get(kind)
        if inside is None:
            inside = _INSIDE[kind] = next(how for known, how in _HOW if issubclass(kind, known))
        inside(self, one, path)

    def _array(self, one: Any, path: str) -> None:
        self._add(f"{one.dtype} {one.shape} {one.tobytes()!r}" if one.dtype != object else "objects", path)
        if one.dtype == object:
            self._sequence(one.ravel().tolist(), path)

    def _set(self, one: AbstractSet[Any], path: str) -> None:
        self._add(f"set {len(one)}", path)
        for each in sorted(one, key=self._place_of):
            self._go(each, f"{path}{{}}")

    def _place_of(self, each: Any) -> str:
        """What a set is sorted by: a text that is the same in every process."""
        text = _order(each)
        return text if " at 0x" not in text else Walk(self._without).digest(each).hex()

    def _mapping(self, one: Mapping[Any, Any], path: str) -> None:
        self._add(f"mapping {len(one)}", path)
        for name, key in _sorted(one):
            self._add(name, path)
            self._go(one[key], f"{path}[{name}]" if self.parts is not None else "")

    def _listing(self, one: Any, path: str) -> None:
        self._add(f"{type(one).__name__} {len(one)}", path)
        self._sequence(one, path)

    def _sequence(self, items: Any, path: str) -> None:
        for index, each in enumerate(items):
            self._go(each, f"{path}[{index}]" if self.parts is not None else "")

    def _function(self, one: Any, path: str) -> None:
        self._add(f"function {one.__qualname__}", path)
        self._sequence([cell.cell_contents for cell in one.__closure__ or () if _filled(cell)], f"{path}()")
        self._sequence(one.__defaults__ or (), f"{path}()")

    def _method(self, one: Any, path: str) -> None:
        self._add(f"method {one.__func__.__qualname__}", path)
        self._go(one.__self__, f"{path}.__self__")

    def _greenlet(self, one: Any, path: str) -> None:
        self._frames(one.gr_frame, path)

    def _coroutine(self, one: Any, path: str) -> None:
        self._frames(one.cr_frame, path)
        self._go(one.cr_await, f"{path}.await")

    def _task(self, one: Any, path: str) -> None:
        self._go(one.get_coro(), f"{path}.coro")

    def _future(self, one: Any, path: str) -> None:
        self._add(f"future {one._state}", path)

    def _timer(self, one: Any, path: str) -> None:
        self._add(f"timer {one.when()} {one.cancelled()}", path)

    def _count(self, one: Any, path: str) -> None:
        self._add(repr(one), path)

    def _object(self, one: Any, path: str) -> None:
        name = type(one).__qualname__
        self._add(name, path)
        for attribute, value in _attributes(one):
            if (name, attribute) not in self._without and ("", attribute) not in self._without:
                self._go(value, f"{path}.{attribute}" if self.parts is not None else "")

    def _frames(self, frame: types.FrameType | None, path: str) -> None:
        while frame is not None:
            self._add(f"{frame.f_code.co_qualname} {frame.f_lasti}", path)
            for name, value in sorted(frame.f_locals.items()):
                if (frame.f_code.co_qualname, name) not in self._without:
                    self._go(value, f"{path}<{name}>")
            frame = frame.f_back


_HOW: tuple[tuple[Any, Callable[[Walk, Any, str], None]], ...] = (
    (np.ndarray, Walk._array),
    (Mapping, Walk._mapping),
    (AbstractSet, Walk._set),
    ((list, tuple, deque), Walk._listing),
    (types.FunctionType, Walk._function),
    (types.MethodType, Walk._method),
    (greenlet.greenlet, Walk._greenlet),
    (types.CoroutineType, Walk._coroutine),
    (asyncio.Task, Walk._task),
    (asyncio.Future, Walk._future),
    (asyncio.TimerHandle, Walk._timer),
    (itertools.count, Walk._count),
    (types.FrameType, Walk._frames),
    (object, Walk._object),
)
"""How each kind of object is walked: by the first of these that it is."""
_INSIDE: dict[type, Callable[[Walk, Any, str], None]] = {}

_TEXTS: dict[int, tuple[Wire, str]] = {}
_KEPT_TEXTS: dict[tuple[int, Any], tuple[Any, str]] = {}


def forget() -> None:
    """Drop what was written down of objects of an exploration before this one."""
    _TEXTS.clear()
    _KEPT_TEXTS.clear()


def _text_of(one: Wire) -> str:
    """What stands for an object of the API; they are not changed, and many states share them."""
    known = _TEXTS.get(id(one))
    if known is None:
        if len(_TEXTS) >= MOST_KEPT:
            _TEXTS.clear()
        text = hashlib.blake2b(msgspec.json.encode(one), digest_size=12).hexdigest()
        known = _TEXTS[id(one)] = (one, f"{type(one).__name__} {text}")
    return known[1]


_GROUPS: dict[type, int] = {}


def _group_of(one: Any) -> int:
    if isinstance(one, Version):
        return _VERSION
    if isinstance(one, _PLAIN_TYPES):
        return _PLAIN
    if isinstance(one, Wire):
        return _WIRE
    if isinstance(one, _KEPT_TYPES):
        return _KEPT
    if isinstance(one, _SHARED_TYPES):
        return _SHARED
    # whether two names have one of these or two equal ones makes no difference
    return _VALUE if isinstance(one, (tuple, frozenset, msgspec.Struct, np.ndarray)) else _OBJECT


def _sorted(keys: Iterable[Any]) -> list[tuple[str, Any]]:
    """Keys by what they are called; those without a name of their own stay in the order in which they came."""
    named = [(_order(key), key) for key in keys]
    if any(" at 0x" in name for name, _ in named):
        return [("", key) for _, key in named]
    return sorted(named, key=_first)


def _order(key: Any) -> str:
    return key if isinstance(key, str) else repr(key)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


def _attributes(one: Any) -> list[tuple[str, Any]]:
    kind = type(one)
    found = [(name, getattr(one, name)) for name in _slots_of(kind) if hasattr(one, name)]
    held = getattr(one, "__dict__", None)
    if not held:
        return found
    worked_out = _worked_out(kind)
    return sorted([*found, *(each for each in held.items() if each[0] not in worked_out)], key=_first)


@cache
def _worked_out(kind: type) -> frozenset[str]:
    """The cached properties of a class: what they say follows from the rest of the object."""
    members = (each for base in kind.__mro__ for each in vars(base).items())
    return frozenset(name for name, value in members if isinstance(value, cached_property))


_first = operator.itemgetter(0)


@cache
def _slots_of(kind: type) -> list[str]:
    """The names of its attributes that are not in its `__dict__`."""
    names = set(getattr(kind, "__struct_fields__", ()))
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            hidden = slot.startswith("__") and not slot.endswith("__")
            names.add(f"_{base.__name__.lstrip('_')}{slot}" if hidden else slot)
    return sorted(names - {"__dict__", "__weakref__"})
