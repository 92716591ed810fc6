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
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cached_property
from threading import Event, Lock, Thread
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import greenlet
import msgspec
import numpy as np
import prometheus_client.metrics
import structlog

from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from muster.api.base import Wire

_PLAIN, _WIRE, _KEPT, _SHARED, _VALUE, _OBJECT = range(6)
"""How a type is walked: written down; written down once; walked once for all; by its name; inside, each time it is met;
inside, once."""
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
        if kind is dict:
            self._mapping(one, path)
        elif kind is list or kind is tuple:
            self._add(f"{kind.__name__} {len(one)}", path)
            self._sequence(one, path)
        elif isinstance(one, np.ndarray):
            self._add(f"{one.dtype} {one.shape} {one.tobytes()!r}" if one.dtype != object else "objects", path)
            if one.dtype == object:
                self._sequence(one.ravel().tolist(), path)
        elif isinstance(one, Mapping):
            self._mapping(one, path)
        elif isinstance(one, AbstractSet):
            self._add(f"set {len(one)}", path)
            for each in sorted(one, key=self._place_of):
                self._go(each, f"{path}{{}}")
        elif isinstance(one, (list, tuple, deque)):
            self._add(f"{type(one).__name__} {len(one)}", path)
            self._sequence(one, path)
        else:
            self._object(one, path)

    def _place_of(self, each: Any) -> str:
        """What a set is sorted by: a text that is the same in every process."""
        text = _order(each)
        return text if " at 0x" not in text else Walk(self._without).digest(each).hex()

    def _mapping(self, one: Mapping[Any, Any], path: str) -> None:
        self._add(f"mapping {len(one)}", path)
        for name, key in _sorted(one):
            self._add(name, path)
            self._go(one[key], f"{path}[{name}]" if self.parts is not None else "")

    def _sequence(self, items: Any, path: str) -> None:
        for index, each in enumerate(items):
            self._go(each, f"{path}[{index}]" if self.parts is not None else "")

    def _object(self, one: Any, path: str) -> None:  # noqa: C901 - one case for each kind of thing that Python has
        name = type(one).__qualname__
        self._add(name, path)
        if isinstance(one, types.FunctionType):
            self._add(one.__qualname__, path)
            self._sequence([cell.cell_contents for cell in one.__closure__ or () if _filled(cell)], f"{path}()")
            self._sequence(one.__defaults__ or (), f"{path}()")
        elif isinstance(one, types.MethodType):
            self._add(one.__func__.__qualname__, path)
            self._go(one.__self__, f"{path}.__self__")
        elif isinstance(one, greenlet.greenlet):
            self._frames(one.gr_frame, path)
        elif isinstance(one, types.CoroutineType):
            self._frames(one.cr_frame, path)
            self._go(one.cr_await, f"{path}.await")
        elif isinstance(one, asyncio.Task):
            self._go(one.get_coro(), f"{path}.coro")
        elif isinstance(one, asyncio.Future):
            self._add(f"{one._state}", path)
        elif isinstance(one, asyncio.TimerHandle):
            self._add(f"{one.when()} {one.cancelled()}", path)
        elif isinstance(one, itertools.count):
            self._add(f"{one!r}", path)
        elif isinstance(one, types.FrameType):
            self._frames(one, path)
        else:
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
    names = _SLOTS.get(kind)
    if names is None:
        names = _SLOTS[kind] = _slots_of(kind)
        _WORKED_OUT[kind] = frozenset(
            name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, cached_property)
        )
    found = [(name, getattr(one, name)) for name in names if hasattr(one, name)]
    held = getattr(one, "__dict__", None)
    if not held:
        return found
    worked_out = _WORKED_OUT[kind]
    return sorted([*found, *(each for each in held.items() if each[0] not in worked_out)], key=_first)


_SLOTS: dict[type, list[str]] = {}
_WORKED_OUT: dict[type, frozenset[str]] = {}
"""Cached properties of a class: what they say follows from the rest of the object."""
_first = operator.itemgetter(0)


def _slots_of(kind: type) -> list[str]:
    names = set(getattr(kind, "__struct_fields__", ()))
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            hidden = slot.startswith("__") and not slot.endswith("__")
            names.add(f"_{base.__name__.lstrip('_')}{slot}" if hidden else slot)
    return sorted(names - {"__dict__", "__weakref__"})
