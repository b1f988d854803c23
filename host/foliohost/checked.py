# SPDX-License-Identifier: GPL-2.0-only
"""Tables of JSON that have to hold what somebody expects, with a sentence for what they do not."""

from __future__ import annotations

from typing import Any

_REQUIRED = object()
"""The default of a key that has to be there."""


class Wrong(Exception):
    """What is wrong with a table, as the end of a sentence."""


class JsonTable:
    """A table of JSON whose keys are taken out as they are checked; ``name`` tells where it stands."""

    def __init__(self, content: Any, name: str = "") -> None:
        if not isinstance(content, dict):
            raise Wrong(f"{name or 'it'} is no table")
        self.rest = dict(content)
        self._name = name

    def _take(self, key: str, default: Any) -> Any:
        if key not in self.rest and default is _REQUIRED:
            raise Wrong(f"'{self._at(key)}' is missing")
        return self.rest.pop(key, default)

    def _at(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key

    def number(self, key: str, default: Any = _REQUIRED, least: int = 0, most: int | None = None) -> Any:
        """A whole number, or the default."""
        value = self._take(key, default)
        if value is default:
            return value
        if type(value) is not int or value < least or (most is not None and value > most):
            bounds = f"at least {least}" if most is None else f"{least} to {most}"
            raise Wrong(f"'{self._at(key)}' is no whole number of {bounds}")
        return value

    def text(self, key: str) -> str:
        value = self._take(key, _REQUIRED)
        if not isinstance(value, str):
            raise Wrong(f"'{self._at(key)}' is no text")
        return value

    def items(self, key: str, default: Any = _REQUIRED) -> list[Any]:
        value = self._take(key, default)
        if not isinstance(value, list):
            raise Wrong(f"'{self._at(key)}' is no list")
        return value

    def tables(self, key: str, default: Any = _REQUIRED) -> list[JsonTable]:
        return [JsonTable(each, f"{self._at(key)}[{place}]") for place, each in enumerate(self.items(key, default))]
