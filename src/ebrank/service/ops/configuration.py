"""Settings from one TOML file, then the environment, then flags, each overriding the one before.

A file holds a table per section. The environment has one variable per setting, such as
`EBRANK_SERVE_RANKING_K`. An error names the place of what is misspelled or out of range:

>>> read(environment={"EBRANK_SERVE_RANKING_K": "20"}).ranking.k
20
>>> read(flags={"ranking": {"polcy": "ebrank"}})
Traceback (most recent call last):
ebrank.environment.config.SettingsError: flags: there is no ranking.polcy. Did you mean policy?
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from ebrank.environment.config import SettingsError, read_toml
from ebrank.errors import ParameterError
from ebrank.evidence import Valuation
from ebrank.evidence.slots import SLOTS
from ebrank.model.policy import policies
from ebrank.service.meanings import meanings
from ebrank.service.settings import Settings, Token

PREFIX = "EBRANK_SERVE_"
OFF = "off"
"""The type of a setting that may have no value."""

Tables = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Declaration:
    """One setting as it is declared."""

    section: str
    key: str
    type: Any
    default: object
    meaning: str

    @property
    def name(self) -> str:
        """Its name in messages and tables."""
        return f"{self.section}.{self.key}"

    @property
    def many(self) -> bool:
        """Whether it is a list; the environment separates its parts by commas."""
        return "tuple[" in str(self.type)

    @property
    def variable(self) -> str:
        """Its variable in the environment."""
        return f"{PREFIX}{self.section}_{self.key}".upper()


@cache
def declarations() -> tuple[Declaration, ...]:
    """Return every setting, in the order of the file."""
    declared: list[Declaration] = []
    for section, settings in _sections().items():
        kinds, meaning = get_type_hints(settings, include_extras=True), meanings(settings)
        for key in fields(settings):
            declared.append(
                Declaration(section, key.name, kinds[key.name], key.default, meaning[key.name])
            )
    return tuple(declared)


def read(
    path: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Tables | None = None,
) -> Settings:
    """Return the effective settings.

    Raises:
        SettingsError: naming the file, variable or flag, the key and the remedy.
    """
    values = {section: dict[str, Any]() for section in _sections()}
    tokens: tuple[Token, ...] = ()
    if path is not None:
        try:
            table = read_toml(Path(path))
        except FileNotFoundError:
            raise SettingsError(
                f"{path}: there is no such file. Create it or leave it out"
            ) from None
        tokens = _tokens(table.pop("tokens", {}), str(path))
        _take_tables(values, table, str(path))
    _take_environment(values, environment or {})
    _take_tables(values, flags or {}, "flags")
    chosen: dict[str, Any] = {name: kind(**values[name]) for name, kind in _sections().items()}
    settings = Settings(**chosen, tokens=tokens)
    _check(settings)
    return settings


def effective(settings: Settings) -> dict[str, dict[str, object]]:
    """Return all settings by section and key, tokens by name and scopes, without any secret."""
    tokens = {token.name: list(token.scopes) for token in settings.tokens}
    return asdict(settings) | {"tokens": tokens}


def table() -> str:
    """Return all settings as a Markdown table, for the documentation."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for setting in declarations():
        default = OFF if setting.default is None else json.dumps(setting.default)
        rows.append(f"| `{setting.name}` | `{default}` | {setting.meaning} |")
    return "\n".join(rows)


@cache
def _sections() -> dict[str, Any]:
    """Return the class of each section, by its name."""
    return {name: kind for name, kind in get_type_hints(Settings).items() if name != "tokens"}


def _check(settings: Settings) -> None:
    """Raise if settings mean nothing together."""
    checks: dict[str, Callable[[], object]] = {
        "[examination]": lambda: Valuation.of(settings.examination.examination(), slots=SLOTS),
        "events.behaviors": settings.events.declared,
        "limits.memory": settings.limits.memory_bytes,
        "ranking.policy": lambda: policies.parse(settings.ranking.policy),
        "ranking.unknown": settings.check_unknown,
    }
    for place, check in checks.items():
        try:
            check()
        except ParameterError as problem:
            raise SettingsError(f"{place}: {problem}") from None


def _take_tables(values: dict[str, dict[str, Any]], tables: Mapping[str, Any], origin: str) -> None:
    """Take values in their types; raise if a key is unknown or a value does not fit."""
    for section, table in tables.items():
        if section not in _sections():
            hint = _hint(section, [*_sections(), "tokens"])
            raise SettingsError(f"{origin}: there is no section {section}.{hint}")
        if not isinstance(table, Mapping):
            raise SettingsError(f"{origin}: {section} is a section. Write [{section}] above it")
        declared = {each.key: each for each in declarations() if each.section == section}
        for key, value in table.items():
            place = f"{section}.{key}"
            if key not in declared:
                raise SettingsError(f"{origin}: there is no {place}.{_hint(key, declared)}")
            values[section][key] = _value(declared[key], value, f"{origin}: {place}")


def _take_environment(values: dict[str, dict[str, Any]], environment: Mapping[str, str]) -> None:
    declared = {setting.variable: setting for setting in declarations()}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        if variable not in declared:
            raise SettingsError(f"{variable}: there is no such setting.{_hint(variable, declared)}")
        setting = declared[variable]
        many = setting.many and text != OFF
        value = [word.strip() for word in text.split(",") if word] if many else text
        values[setting.section][setting.key] = _value(setting, value, variable, strict=False)


def _value(setting: Declaration, value: object, place: str, *, strict: bool = True) -> object:
    """Convert a value to its declared type; environment variables may give numbers as text."""
    if value == OFF and NoneType in get_args(setting.type):
        return None  # TOML has no null
    try:
        if isinstance(value, float) and not math.isfinite(value):
            raise msgspec.ValidationError("Expected a finite number")
        return msgspec.convert(value, setting.type, strict=strict)
    except msgspec.ValidationError as problem:
        text = f"{place}: {problem}; it is {value!r}. It means: {setting.meaning}"
        raise SettingsError(text) from None


def _tokens(table: object, origin: str) -> tuple[Token, ...]:
    remedy = (
        "Run `ebrank serve --new-token NAME --scopes rank,feedback` and copy the line it prints"
    )
    if not isinstance(table, Mapping):
        raise SettingsError(f"{origin}: tokens is a section. {remedy}")
    tokens = []
    for name, value in table.items():
        try:
            if not isinstance(value, Mapping) or set(value) != {"sha256", "scopes"}:
                raise msgspec.ValidationError("a token has sha256 and scopes")
            tokens.append(msgspec.convert({"name": name, **value}, Token))
        except msgspec.ValidationError as problem:
            # Do not repeat the value: it may be the secret itself, in the wrong place.
            raise SettingsError(f"{origin}: tokens.{name}: {problem}. {remedy}") from None
    return tuple(tokens)


def _hint(word: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(word, names, n=1)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(names)}"
