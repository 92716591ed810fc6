"""Replacing the code of loaded functions by a mutant's: a new process would cost seconds for each mutant."""

import gc
from collections import defaultdict
from dataclasses import dataclass
from types import CodeType, FunctionType


@dataclass(frozen=True)
class Swap:
    """New code by old code; incomplete if functions were added or removed, as loaded ones may then keep old code."""

    codes: dict[CodeType, CodeType]
    is_complete: bool


def compared(before: str, after: str, path: str) -> Swap:
    """Return the code that differs between two texts of the module at the path."""
    pairs: dict[CodeType, CodeType] = {}
    old, new = (compile(text, path, "exec", dont_inherit=True) for text in (before, after))
    return Swap(pairs, is_complete=_pair(old, new, pairs))


def _pair(old: CodeType, new: CodeType, into: dict[CodeType, CodeType]) -> bool:
    """Pair the nested code objects of two code objects, by order; return false if their functions differ."""
    if old != new:
        into[old] = new
    inner, others = _within(old), _within(new)
    if [code.co_name for code in inner] != [code.co_name for code in others]:
        return False
    matches = [_pair(one, other, into) for one, other in zip(inner, others, strict=True)]
    return all(matches)


def _within(code: CodeType) -> list[CodeType]:
    return [part for part in code.co_consts if isinstance(part, CodeType)]


def functions() -> dict[str, list[FunctionType]]:
    """Return all functions of this process by the file of their code."""
    result = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            result[each.__code__.co_filename].append(each)
    return dict(result)


def apply(swap: Swap, loaded: list[FunctionType]) -> bool:
    """Give loaded functions of the module their new code; return false if one has other free variables there."""
    new = [(function, swap.codes[function.__code__]) for function in loaded if function.__code__ in swap.codes]
    if any(function.__code__.co_freevars != code.co_freevars for function, code in new):
        return False
    for function, code in new:
        function.__code__ = code
    return True
