"""A random sample of mutants, and the list of mutants that are known to be equivalent.

A hash of the seed and the mutant's text ranks all mutants, and the sample has the first ones. A change of other lines
keeps nearly the whole sample, so that two runs with one seed can be compared.
"""

import ast
import heapq
import tomllib
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import msgspec

from tests.mutants.sites import Site, sites
from tests.mutants.source import Source

Key = tuple[str, str, str, str]
"""File, operator, and the line before and after."""


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that no test can find, as the product behaves the same: the line before and after, and why."""

    file: str
    operator: str
    line: str
    becomes: str
    reason: str

    @property
    def key(self) -> Key:
        """Return the fields by which a mutant is the listed one."""
        return self.file, self.operator, self.line, self.becomes


class _Listed(msgspec.Struct, forbid_unknown_fields=True):
    equivalent: list[Equivalent] = []


def population(files: dict[str, str]) -> list[Site]:
    """Return all possible mutants of the modules, given as text by path."""
    return [site for file, text in sorted(files.items()) for site in sites(file, text)]


def sample(population: Iterable[Site], files: dict[str, str], *, count: int, seed: int) -> list[Site]:
    """Return `count` mutants that a compiler accepts, by the rank that the seed gives each."""
    ranked = [(_rank(site, seed), index, site) for index, site in enumerate(population)]
    heapq.heapify(ranked)
    return list(_first(count, ranked, files))


def _first(count: int, ranked: list[tuple[bytes, int, Site]], files: dict[str, str]) -> Iterator[Site]:
    while ranked and count:
        site = heapq.heappop(ranked)[2]
        if is_valid(site, files[site.file]):
            yield site
            count -= 1


def _rank(site: Site, seed: int) -> bytes:
    key = "\0".join([str(seed), site.file, site.edit.operator, site.text, site.becomes, str(site.nth)])
    return blake2b(key.encode(), digest_size=8).digest()


def is_valid(site: Site, text: str) -> bool:
    """Return true if the mutant is a program, and another one than the product."""
    source = Source(text)
    try:
        mutant = ast.parse(source.edited(site.edit))
        compile(mutant, site.file, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return ast.dump(mutant) != ast.dump(source.tree)


def read_equivalents(text: str) -> list[Equivalent]:
    """Return the list of equivalent mutants; msgspec.ValidationError names a missing or unknown field."""
    return msgspec.convert(tomllib.loads(text), _Listed).equivalent


def key_of(site: Site) -> Key:
    """Return the key of a mutant, which its entry in the list of equivalents has, too."""
    return site.file, site.edit.operator, site.text, site.becomes


def stale(listed: Iterable[Equivalent], population: Iterable[Site]) -> list[Equivalent]:
    """Return the listed entries that match no mutant of the product any more."""
    known = set(map(key_of, population))
    return [one for one in listed if one.key not in known]
