"""What every estimator shares: parameters that can be read, set, printed and cloned.

The parameters of an estimator are the arguments of its `__init__`, kept under the same names, in
the manner of scikit-learn; what it learns ends in an underscore.
"""

from __future__ import annotations

import inspect
import math
from numbers import Integral, Real
from typing import Self

from ebrank.errors import ParameterError


class Parameterized:
    """Base of priors and rankers: `get_params`, `set_params`, `repr`."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters by name; `deep` is accepted for scikit-learn's sake."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: object) -> Self:
        """Change some parameters; an unknown or bad one changes nothing."""
        for unknown in params.keys() - set(self._parameter_names()):
            raise ParameterError(
                f"{type(self).__name__} has no parameter {unknown!r}; "
                f"it has {', '.join(self._parameter_names())}"
            )
        before = self.get_params()
        try:
            self.__dict__.update(params)
            self._check_params()
        except Exception:
            self.__dict__.update(before)
            raise
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._changed_params().items())
        return f"{type(self).__name__}({shown})"

    def _check_params(self) -> None:
        """Raise `ParameterError` where a parameter is out of range; called on every change."""

    @classmethod
    def _parameter_names(cls) -> tuple[str, ...]:
        return tuple(inspect.signature(cls).parameters)

    def _changed_params(self) -> dict[str, object]:
        defaults = inspect.signature(type(self)).parameters
        return {
            name: value
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name].default)
        }


def require(condition: bool, problem: str) -> None:
    """Raise `ParameterError` with this text unless the condition holds."""
    if not condition:
        raise ParameterError(problem)


def check_number(
    name: str, value: object, *, above: float | None = None, at_least: float | None = None
) -> None:
    """Raise unless a value is a finite number in its range."""
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if above is not None:
        good = number and float(value) > above  # type: ignore[arg-type]
        require(good, f"{name} must be a number above {above}, not {value!r}")
    if at_least is not None:
        good = number and float(value) >= at_least  # type: ignore[arg-type]
        require(good, f"{name} must be a number of {at_least} or more, not {value!r}")


def check_whole(name: str, value: object, *, at_least: int, optional: bool = False) -> None:
    """Raise unless a value is a whole number in its range, or None where that is allowed."""
    if optional and value is None:
        return
    whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least
    also = " or None" if optional else ""
    require(whole, f"{name} must be a whole number of {at_least} or more{also}, not {value!r}")


def require_number(
    owner: object, name: str, *, above: float | None = None, at_least: float | None = None
) -> None:
    """Raise unless the attribute is a finite number in its range."""
    check_number(name, getattr(owner, name), above=above, at_least=at_least)


def require_whole(owner: object, name: str, *, at_least: int, optional: bool = False) -> None:
    """Raise unless the attribute is a whole number in its range, or None where that is allowed."""
    check_whole(name, getattr(owner, name), at_least=at_least, optional=optional)


def require_flag(owner: object, name: str) -> None:
    """Raise unless the attribute is True or False."""
    value = getattr(owner, name)
    require(isinstance(value, bool), f"{name} must be True or False, not {value!r}")
