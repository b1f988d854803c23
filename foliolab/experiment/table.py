# SPDX-License-Identifier: GPL-2.0-only
"""Reading a TOML file key by key, so that every complaint names the file and the key."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from foliolab.errors import BadExperiment
from foliolab.experiment.cell import Value
from foliolab.experiment.sizes import parse_size


class Table:
    """One table. Take the known keys, then call ``finish``, which complains about the others."""

    def __init__(self, file: Path, place: str, content: Mapping[str, object]) -> None:
        self.file = file
        self._place = place
        self._content = dict(content)

    def __contains__(self, key: str) -> bool:
        return key in self._content

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that were not taken yet."""
        return tuple(self._content)

    def fail(self, key: str, complaint: str) -> NoReturn:
        name = f"{self._place}.{key}" if self._place else key
        raise BadExperiment(f"{self.file}: '{name}' {complaint}.")

    def over(self, defaults: "Table") -> "Table":
        """This table, with what it lacks taken from ``defaults``."""
        return Table(self.file, self._place, {**defaults._content, **self._content})

    def finish(self) -> None:
        for key in self._content:
            self.fail(key, "is not a key that is known here")

    def text(self, key: str) -> str:
        value = self._take(key)
        if not isinstance(value, str) or not value:
            self.fail(key, "has to be a string")
        return value

    def integer(self, key: str, least: int = 0) -> int:
        value = self._take(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.fail(key, f"has to be a whole number, at least {least}")
        return value

    def number(self, key: str, *, zero: bool = False) -> float:
        """A number above zero, or zero where that makes sense."""
        value = self._take(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not (value > 0 or (zero and value == 0)):
            self.fail(key, f"has to be a number{', at least 0' if zero else ' above 0'}")
        return float(value)

    def truth(self, key: str) -> bool:
        value = self._take(key)
        if not isinstance(value, bool):
            self.fail(key, "has to be true or false")
        return value

    def size(self, key: str) -> int:
        """Bytes, from a string such as "20G"."""
        text = self.text(key)
        try:
            return parse_size(text)
        except ValueError as error:
            self.fail(key, f"is wrong: {error}")

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._take(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            self.fail(key, "has to be a list of strings")
        return tuple(value)

    def table(self, key: str) -> "Table":
        value = self._take(key)
        if not isinstance(value, dict):
            self.fail(key, "has to be a table")
        return self._inner(key, value)

    def tables(self, key: str) -> list["Table"]:
        """A list of tables, or [[key]] entries."""
        value = self._take(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            self.fail(key, "has to be a list of tables")
        return [self._inner(f"{key}[{position}]", item) for position, item in enumerate(value)]

    def scalars(self) -> dict[str, Value]:
        """All that is left, each a string or a whole number."""
        values: dict[str, Value] = {}
        for key, value in self.axes().items():
            if isinstance(value, list):
                self.fail(key, "has to be a string or a whole number")
            values[key] = value
        return values

    def axes(self) -> dict[str, Value | list[Value]]:
        """All that is left, as axes: each a string, a whole number, or a list of these."""
        axes: dict[str, Value | list[Value]] = {}
        for key in self.keys:
            value = self._take(key)
            items = value if isinstance(value, list) else [value]
            if not items or not all(isinstance(item, (str, int)) and not isinstance(item, bool) for item in items):
                self.fail(key, "has to be a string, a whole number, or a list of these")
            axes[key] = value
        return axes

    def _take(self, key: str) -> Any:
        if key not in self._content:
            self.fail(key, "is missing")
        return self._content.pop(key)

    def _inner(self, key: str, content: Mapping[str, object]) -> "Table":
        return Table(self.file, f"{self._place}.{key}" if self._place else key, content)


def read_toml(file: Path) -> Table:
    """The file's top table; BadExperiment with the line if it is not TOML or cannot be read."""
    try:
        return Table(file, "", tomllib.loads(file.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise BadExperiment(f"{file} is not valid TOML: {error}.") from None
    except UnicodeDecodeError:
        raise BadExperiment(f"{file} is not valid TOML: it is not UTF-8 text.") from None
    except OSError as error:
        raise BadExperiment(f"{file} cannot be read: {error.strerror}.") from None
