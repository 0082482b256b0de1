"""What every estimator shares: parameters that can be read, set, printed and cloned.

The parameters of an estimator are the arguments of its `__init__`, kept under the same names, in
the manner of scikit-learn; what it learns ends in an underscore.
"""

from __future__ import annotations

import inspect
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
