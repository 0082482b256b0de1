"""Parameters, each declared once: default, range, help, and the grid that `tune` tries.

A frozen dataclass declares them as fields; the class, the command line, the service's settings and
the documentation all read the same declaration:

>>> @dataclass(frozen=True)
... class Root(Configured):
...     name, help = "root", "A bonus that falls with the root of the exposure."
...     width: float = param(1.0, "width of the bonus", at_least=0, grid=(0.5, 1.0, 2.0))
>>> Root(width=2.0)
Root(width=2.0)
>>> Root(width=-1.0)
Traceback (most recent call last):
ebrank.errors.ParameterError: root: width takes a number of 0 or more, not -1.0
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

from ebrank.errors import ParameterError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30}
_BYTES = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})", re.IGNORECASE)

AUTO = "auto"
"""How users write None, which means: chosen from the data."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default, its range, its help, and the grid that `tune` tries.

    A default of None means that the data choose the value; users write it as `auto`.
    """

    name: str
    default: Any
    help: str
    at_least: float | None
    at_most: float | None
    choices: tuple[str, ...]
    grid: tuple[Any, ...]
    open: bool
    kind: type

    def read(self, text: str) -> Any:  # noqa: ANN401 (of the parameter's type)
        """Parse a value from text."""
        if self.default is None and text == AUTO:
            return None
        try:
            if self.kind is bool:
                return {"true": True, "false": False}[text.lower()]
            return self.kind(text)
        except (KeyError, ValueError):
            raise ParameterError(f"{self.name} takes {self.domain}, not {text!r}") from None

    def check(self, value: object, owner: str) -> Any:  # noqa: ANN401 (of the parameter's type)
        """Return a value in the parameter's own type; raise if it is outside the domain."""
        if self.default is None and value is None:
            return None
        if not self._contains(value):
            raise ParameterError(f"{owner}: {self.name} takes {self.domain}, not {value!r}")
        return self.kind(value)

    def _contains(self, value: object) -> bool:
        if self.kind is bool:
            return isinstance(value, bool)
        if self.kind is str:
            return isinstance(value, str) and (
                value in self.choices or not self.choices or (self.open and ":" in value)
            )
        if not is_number(value) or (self.kind is int and not isinstance(value, Integral)):
            return False
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)

    @property
    def domain(self) -> str:
        """The values it takes, in words."""
        auto = f", or {AUTO}" if self.default is None else ""
        if self.kind is str:
            texts = (*self.choices, "module:Class") if self.open else self.choices
            return (" or ".join(texts) or "a text") + auto
        if self.kind is bool:
            return "true or false"
        kind = "a whole number" if self.kind is int else "a number"
        match self.at_least, self.at_most:
            case None, None:
                return kind + auto
            case low, None:
                return f"{kind} of {low:g} or more{auto}"
            case None, high:
                return f"{kind} of {high:g} or less{auto}"
            case low, high:
                return f"{kind} from {low:g} to {high:g}{auto}"


def param(
    default: Any,  # noqa: ANN401 (a parameter of any type)
    help: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] = (),
    grid: tuple[Any, ...] = (),
    open: bool = False,
    kind: type | None = None,
) -> Any:  # noqa: ANN401 (stands in for the field's own type)
    """Declare a parameter.

    Args:
        default: its value unless given; None if the data decide (then give `kind` too).
        help: what it means.
        at_least: its lowest value.
        at_most: its highest value.
        choices: the texts it may be.
        grid: what `ebrank tune` tries.
        open: whether a text may also name the user's own class, as `module:Class`.
        kind: its type, if the default does not show it.
    """
    kind = kind or type(default)
    about = Parameter("", default, help, at_least, at_most, choices, grid, open, kind)
    return dataclasses.field(default=default, metadata={"about": about})


def declared(owner: type) -> tuple[Parameter, ...]:
    """Return the parameters that a class declares."""
    if owner not in _DECLARED:
        _DECLARED[owner] = tuple(_fields(owner))
    return _DECLARED[owner]


_DECLARED: WeakKeyDictionary[type, tuple[Parameter, ...]] = WeakKeyDictionary()


def _fields(owner: type) -> Iterator[Parameter]:
    if not dataclasses.is_dataclass(owner) or not owner.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ParameterError(f"{owner.__name__} needs the decorator @dataclass(frozen=True)")
    for field in dataclasses.fields(owner):
        if "about" not in field.metadata:
            raise ParameterError(f"declare {field.name} of {owner.__name__} with param(...)")
        yield dataclasses.replace(field.metadata["about"], name=field.name)


def typed(value: object) -> str:
    """Return a parameter's value as a user would type it.

    >>> typed(20.0), typed(0.5), typed(True), typed("ips"), typed(None)
    ('20', '0.5', 'true', 'ips', 'auto')
    """
    if value is None:
        return AUTO
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


class Configured:
    """Base of classes with parameters: a frozen dataclass whose fields are declared with `param`.

    Class attributes:
        name: its name in texts.
        help: one sentence that says what it does.
    """

    name: ClassVar[str]
    help: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise if a parameter is out of range, and give each its own type."""
        for parameter in declared(type(self)):
            value = parameter.check(getattr(self, parameter.name), self.name)
            object.__setattr__(self, parameter.name, value)

    @classmethod
    def from_text(cls, settings: str, called: str) -> Self:
        """Return one with parameters from a text such as `epsilon=20,estimator=exposure`.

        `called` is what errors call it.
        """
        parameters = {parameter.name: parameter for parameter in declared(cls)}
        return cls(**read_settings(settings, called, lambda _: parameters))


C = TypeVar("C", bound=Configured)


def named(text: str, own: Mapping[str, type[C]], load: Callable[[str], type[C]], what: str) -> C:
    """Return what a text such as `name:a=1` or `module:Class:a=1` names, with its parameters.

    `own` are ebrank's own classes, `load` finds the others, and errors say that no `what` is
    called so.
    """
    name, _, rest = text.partition(":")
    if name in own:
        return own[name].from_text(rest, name)
    inside, _, settings = rest.partition(":")
    if inside and "=" not in inside:  # not parameters, so a name in a module
        path = f"{name}:{inside}"
        return load(path).from_text(settings, path)
    raise ParameterError(f"no {what} called {name!r}{near(name, list(own))}")


def to_text(
    name: str,
    parameters: Iterable[Parameter],
    value: Callable[[str], Any],
) -> str:
    """Return a name and the parameters that are not at their default: `ebrank:epsilon=20`."""
    changed = [
        f"{parameter.name}={typed(value(parameter.name))}"
        for parameter in parameters
        if value(parameter.name) != parameter.default
    ]
    return f"{name}:{','.join(changed)}" if changed else name


def read_settings(
    text: str, owner: str, parameters_for: Callable[[Mapping[str, str]], Mapping[str, Parameter]]
) -> dict[str, Any]:
    """Return the values that a text such as `epsilon=20,estimator=exposure` gives parameters.

    `parameters_for` returns the parameters, which may depend on the texts given: a part has its
    own.
    """
    texts: dict[str, str] = {}
    for setting in filter(None, text.split(",")):
        key, _, value = setting.partition("=")
        if key in texts:
            raise ParameterError(f"{owner}: {key} is given twice")
        texts[key] = value
    parameters = parameters_for(texts)
    values = {}
    for key, value in texts.items():
        if key not in parameters:
            raise ParameterError(f"{owner} has no parameter {key!r}{near(key, list(parameters))}")
        if not value:
            example = f"{key}={typed(parameters[key].default)}"
            raise ParameterError(f"{owner}: {key} needs a value, as in {example}")
        try:
            values[key] = parameters[key].read(value)
        except ParameterError as problem:
            raise ParameterError(f"{owner}: {problem}") from None
    return values


def near(name: str, names: list[str]) -> str:
    """Return a hint at the name that was probably meant."""
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"{hint} Known: {', '.join(names)}." if names else "; it has none."


def listed(words: Sequence[str], conjunction: str = "and") -> str:
    """Return words as a list in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or"), listed(["a"])
    ('a, b, and c', 'a or b', 'a')
    """
    if len(words) < 3:
        return f" {conjunction} ".join(words)
    return f"{', '.join(words[:-1])}, {conjunction} {words[-1]}"


def require(condition: bool, problem: str) -> None:
    """Raise `ParameterError` with this text unless the condition holds."""
    if not condition:
        raise ParameterError(problem)


def check_number(
    name: str, value: object, *, above: float | None = None, at_least: float | None = None
) -> None:
    """Raise unless a value is a finite number in its range."""
    low = -math.inf if at_least is None else at_least
    good = is_number(value) and value >= low and (above is None or value > above)
    wanted = f"above {above}" if at_least is None else f"of {at_least} or more"
    require(good, f"{name} must be a number {wanted}, not {value!r}")


def check_whole(name: str, value: object, *, at_least: int, optional: bool = False) -> None:
    """Raise unless a value is a whole number in its range, or None if that is allowed."""
    if optional and value is None:
        return
    whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least
    also = " or None" if optional else ""
    require(whole, f"{name} must be a whole number of {at_least} or more{also}, not {value!r}")


def bytes_of(size: int | str) -> int:
    """Return the bytes of a size, given as a number or as in `512 MB`.

    >>> bytes_of("1.5 GB"), bytes_of("2 KiB"), bytes_of(7)
    (1500000000, 2048, 7)
    """
    match = _BYTES.fullmatch(str(size).strip())
    number = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    require(number >= 1, f"{size!r} is not a size; write it as in 512 MB or 2 GB")
    return number


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number that fits a float; True and False are not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
