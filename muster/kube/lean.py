"""Long objects without most of their metadata: what takes long to decode, and is read of no object. Pure.

The API server accepts a megabyte of labels, owners or finalizers in one object, which would be tens of thousands of
small strings, and milliseconds of an event loop. Real objects have some dozens. Annotations are at most 256 KiB in all,
and stay.
"""

from typing import Final

import msgspec

from muster.api import names

LONG: Final = 65_536
"""Bytes of an object above which its metadata are looked at, and of a part of them above which it is cut."""


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    labels: msgspec.Raw = msgspec.Raw()
    owner_references: msgspec.Raw = msgspec.Raw()
    finalizers: msgspec.Raw = msgspec.Raw()

    @property
    def parts(self) -> tuple[msgspec.Raw, ...]:
        """Those that may be very long."""
        return self.labels, self.owner_references, self.finalizers


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_KEYS = {f"label_{number}": key for number, key in enumerate(sorted(names.CHARGED))}
_Charged = msgspec.defstruct(
    "_Charged", [(name, str | msgspec.UnsetType, msgspec.UNSET) for name in _KEYS], rename=_KEYS
)
_metadata = msgspec.json.Decoder(_Object)
_charged = msgspec.json.Decoder(_Charged)


def lean(data: bytes | msgspec.Raw) -> bytes | msgspec.Raw:
    """Return an object without its owners and finalizers where they are very many, and of very many labels the charged.

    A bound pod is still charged by those (`names.CHARGED`). What is short or cannot be read is returned as it is.
    """
    if len(memoryview(data)) <= LONG:
        return data
    try:
        metadata = _metadata.decode(data).metadata
        long = [bytes(each) for each in metadata.parts if len(memoryview(each)) > LONG]
        short = [msgspec.json.encode(_charged.decode(each)) if each.startswith(b"{") else b"[]" for each in long]
    except (msgspec.DecodeError, RecursionError):
        return data
    if not long:
        return data
    result = bytes(data)
    for many, few in zip(long, short, strict=True):
        begin = result.find(many)
        result = result[:begin] + few + result[begin + len(many) :]
    return result
