# SPDX-License-Identifier: GPL-2.0-only
"""TOML files against schemas of msgspec, so that every complaint names the file and the key."""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import EnumType
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from foliolab.errors import BadExperiment

_Kind = TypeVar("_Kind")

Value = str | int
"""Of an axis, or of a setting."""

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[tuple[Text, ...], Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Number = Annotated[float, Meta(gt=0, le=1e18)]
"""More than nothing, and no infinity."""
Share = Annotated[float, Meta(ge=0, le=1e18)]


def one_of(names: Iterable[str]) -> Meta:
    """Of a string that has to be one of these."""
    return Meta(pattern=f"^({'|'.join(map(re.escape, names))})$")


def _choices(hint: object) -> list[str]:
    """The strings that a Literal or an enumeration allows."""
    return [name for name in (hint if isinstance(hint, EnumType) else get_args(hint)) if isinstance(name, str)]


@dataclass(frozen=True)
class Place:
    """Where something stands in a file."""

    file: Path
    key: str = ""

    def at(self, key: str) -> "Place":
        """What is further in."""
        return replace(self, key=self.key + ("." if self.key and key and key[0] != "[" else "") + key)

    def fail(self, complaint: str) -> NoReturn:
        raise BadExperiment(f"{self.file}: '{self.key}' {complaint}.")

    def convert(self, content: object, kind: type[_Kind]) -> _Kind:
        """What stands here as a ``kind``."""
        try:
            return msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            self._explain(str(error), kind)

    def named(self, tables: Mapping[str, object], kind: type[_Kind]) -> dict[str, _Kind]:
        """What stands here as a ``kind`` each, whose key is its ``name``."""
        found = {}
        for name, content in tables.items():
            place = self.at(name)
            table = place.convert(content, dict[str, Any])
            if "name" in table:
                place.at("name").fail("is not a key that is known here")
            found[name] = place.convert({"name": name, **table}, kind)
        return found

    def _explain(self, error: str, kind: object) -> NoReturn:
        """Complain in words of TOML."""
        complaint, _, path = error.partition(" - at `$")
        place = self.at(path.strip(".`"))
        if found := re.fullmatch(r"Object (missing|contains).* field `(.*)`", complaint):
            place.at(found[2]).fail("is missing" if found[1] == "missing" else "is not a key that is known here")
        if complaint.startswith("Invalid enum value"):
            hint = get_type_hints(kind)[place.key.rpartition(".")[2]]
            known = [name for each in (hint, *get_args(hint)) for name in _choices(each)]
            place.fail(f"has to be one of {', '.join(known)}")
        if found := re.search(r"matching regex '\^\((.*)\)\$'$", complaint):
            known = re.sub(r"\\(.)", r"\1", found[1]).split("|")
            place.fail(f"has to be one of {', '.join(known)}")
        place.fail(f"is wrong: {complaint[0].lower()}{complaint[1:]}".replace("`object`", "`table`"))

    def all_of(self, names: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
        """The names, each of which has to be one of ``known``."""
        for name in names:
            if name not in known:
                self.fail(f"names '{name}', which is not one of {', '.join(known)}")
        return tuple(names)

    def scalars(self, content: Mapping[str, object]) -> dict[str, Value]:
        """Keys with a string or a whole number each."""
        return {key: self.at(key).convert(value, str | int) for key, value in content.items()}  # type: ignore[arg-type]

    def axes(self, content: Mapping[str, object]) -> dict[str, Value | Sequence[Value]]:
        """Keys with a string or a whole number each, or a list of these."""
        kind = str | int | Annotated[list[str | int], Meta(min_length=1)]
        return {key: self.at(key).convert(value, kind) for key, value in content.items()}  # type: ignore[arg-type]


def read_toml(file: Path) -> dict[str, Any]:
    """The file's top table; BadExperiment with the line if it is not TOML or cannot be read."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadExperiment(f"{file} is not valid TOML: {error}.") from None
    except UnicodeDecodeError:
        raise BadExperiment(f"{file} is not valid TOML: it is not UTF-8 text.") from None
    except RecursionError:
        raise BadExperiment(f"{file} is not valid TOML: its values lie too deep in each other.") from None
    except OSError as error:
        raise BadExperiment(f"{file} cannot be read: {error.strerror}.") from None
