"""A score of one item, from plain functions that name what they need.

Between two updates of a model an item's score depends on two numbers that the model gave it and on
what users did with it. A formula says how, and compiled code calls the same function:

>>> cautious = Formula(lambda a, clicks, shown, t: (clicks + t * a) / (shown + t), "t")
>>> cautious(a=0.5, clicks=2, shown=4, t=4.0)
0.5

A function may also name quantities that other functions compute. This is how a policy combines a
family, an estimator and a bonus:

>>> score = Formula(
...     lambda relevance, certainty, epsilon: relevance + epsilon * certainty, "epsilon",
...     given={"relevance": lambda clicks, trials, alpha, beta: (clicks + alpha) / (trials + 6.0),
...            "certainty": lambda relevance, trials, alpha: relevance / (trials + alpha + 5.0)**2,
...            "alpha": "a", "beta": 5.0, "trials": "exposure"})
>>> print(f"{score(a=1.0, clicks=3.0, exposure=10.0, epsilon=20.0):.4f}")
0.2695

Kernels call a function that is written for the formula, which reads what the formula needs, each
quantity once, for a batch of items. A `_Composer` writes it from the names of arguments, and a
`CallFrame` says where each quantity is found. For the first formula this is

>>> print(cautious.text())
def formula(items, rows, a, b, ..., parameters, keys, out):
    t = parameters[0]
    for i in range(items):
        a_ = a[rows[i]]
        clicks_ = number(clicks_sum(shifted(counts, rows[i] * counts_step), ...))
        shown_ = float(shown_sum(shifted(counts, rows[i] * counts_step), slots, table))
        out[i] = function_0(a_, clicks_, shown_, t)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from ebrank.errors import ParameterError
from ebrank.evidence import sums
from ebrank.typing import Floats

if TYPE_CHECKING:
    pass

Function: TypeAlias = Callable[..., Any]
Source: TypeAlias = Function | str | float
"""Where a quantity comes from: a function, another quantity, or a constant."""

NOTHING = np.zeros(1)
"""What a model without shared numbers has learned."""
MODEL = ("a", "b")
"""The model's two numbers for the item."""
RAW = ("counts", "slots", "behaviors", "table")
"""The item's counts, what they are worth, and how many slots and behaviors there are."""
LEARNED = {"learned": "shifted(parameters, {})"}
"""The model's numbers that all items share; they follow the parameters in memory."""
BATCH = 16
"""The most items that a compiled formula scores at once."""


class ItemPrior(NamedTuple):
    """The model's two numbers for each item; b may hold one number for all items."""

    a: Floats
    b: Floats

    def rows(self, rows: npt.NDArray[np.integer] | slice) -> ItemPrior:
        """Return the prior of some items."""
        return ItemPrior(self.a[rows], self.b if len(self.b) == 1 else self.b[rows])


@dataclass(frozen=True)
class CallFrame:
    """How compiled code calls a formula: its arguments, and what follows from them.

    Attributes:
        arguments: names and types of all arguments.
        quantities: what a function may name, each with the expression that gives it.
        result: what to do with the value of the formula.
        batch: whether it is called for a batch of items; i is the number of each.
    """

    arguments: Mapping[str, str]
    quantities: Mapping[str, str]
    result: str
    batch: bool = False

    @property
    def signature(self) -> str:
        """The signature of a compiled formula, as Numba writes it."""
        return f"void({', '.join(self.arguments.values())})"


OWN = "shifted(counts, rows[i] * counts_step)"
"""The counts of an item of a batch."""
SCORE = CallFrame(
    arguments={
        "items": "i8",
        "rows": "CPointer(i4)",
        "a": "CPointer(f8)",
        "b": "CPointer(f8)",
        "b_step": "i8",
        "weighted_clicks_units": "CPointer(i8)",
        "exposure_units": "CPointer(i8)",
        "units_step": "i8",
        "counts": "CPointer(i4)",
        "counts_step": "i8",
        "slots": "i8",
        "behaviors": "i8",
        "table": "CPointer(i8)",
        "parameters": "CPointer(f8)",
        "keys": "CPointer(u8)",
        "out": "CPointer(f8)",
    },
    quantities={
        "a": "a[rows[i]]",
        "b": "b[rows[i] * b_step]",
        **{name: name for name in RAW},
        "counts": OWN,
        "item_counts": f"ItemCounts({OWN}, slots, behaviors, table)",
        "key": "keys[i]",
        **LEARNED,
        "shown": f"float(shown_sum({OWN}, slots, table))",
        "clicks": f"number(clicks_sum({OWN}, slots, behaviors, table))",
        "weighted_clicks": "number(weighted_clicks_units[rows[i] * units_step])",
        "exposure": "number(exposure_units[rows[i] * units_step])",
    },
    result="out[i] = {}",
    batch=True,
)
"""The scores of a batch of items, given the rows where their state is.

C and E, which cost more to compute than n and c, are stored with an item. Steps are how many
numbers lie between a row and the next.
"""

PAIR = replace(
    SCORE,
    arguments={**SCORE.arguments, "beside": "CPointer(f8)"},
    result="out[i], beside[i] = {}",
)
"""Two scores of each item at once, which share the costly parts."""

COUNTS_LOSS = CallFrame(
    arguments={
        "score": "f8",
        "counts": "CPointer(f8)",
        "slots": "i8",
        "behaviors": "i8",
        "table": "CPointer(i8)",
        "parameters": "CPointer(f8)",
        "out": "CPointer(f8)",
    },
    quantities={
        **{name: name for name in ("score", *RAW)},
        "item_counts": "ItemCounts(counts, slots, behaviors, table)",
        "clicks": "number(clicks_sum(counts, slots, behaviors, table))",
        **LEARNED,
    },
    result="out[0], out[1] = {}",
)
"""The loss of a learner's score and its slope, given the counts of a row."""

SUMS_LOSS = replace(
    COUNTS_LOSS,
    quantities={"score": "score", "hits": "counts[0]", "trials": "counts[1]"},
)
"""The same, for rows with two sums instead of counts."""


class Formula:
    """A score of one item, from a plain function that names what it needs.

    - `a` and `b`: the model's two numbers for the item;
    - `shown`, `clicks`, `weighted_clicks`, `exposure`: n, c, C and E;
    - `counts`, `slots`, `behaviors`, `table`: the counts themselves (see `ebrank.evidence.sums`),
      and `item_counts`, all four as one value;
    - `learned`: numbers of the model that all items share;
    - `key`: addresses the random draws of this item in this session (see `ebrank.kernels.streams`);
    - parameters, whose names are given beside the function;
    - quantities that `given` explains: by a function of the same kind, by the name of another
      quantity, or by a constant.

    A function that draws needs compiled code, which is slow to import: give it as
    "module:function", and it is imported when first called.

    Quantities in `before` are computed for a whole batch of items before anything that needs them:
    where each step of a formula waits for the one before, the processor then works on several
    items at once. They must be numbers.
    """

    def __init__(
        self,
        function: Function | str,
        *parameters: str,
        given: Mapping[str, Source] | None = None,
        frame: CallFrame = SCORE,
        before: tuple[str, ...] = (),
    ) -> None:
        self.function = function
        self.parameters = parameters
        self.given = {name: source for name, source in (given or {}).items() if name != source}
        self.frame = frame
        self.before = before

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the compiled function; a function given by name counts by its code."""
        given = {
            name: loaded(source) if isinstance(source, str) and ":" in source else source
            for name, source in self.given.items()
        }
        made = partial(Formula, given=given, frame=self.frame, before=self.before)
        return made, (loaded(self.function), *self.parameters)

    def __call__(self, **values: Any) -> Any:  # noqa: ANN401 (numbers or arrays of them)
        """Return the score from quantities by name, in plain Python or NumPy."""
        computed = {name: value for name, value in values.items() if name not in self.given}
        pending: list[str] = []

        def value(name: str) -> Any:  # noqa: ANN401
            if name not in computed:
                if name not in self.given:
                    raise ParameterError(f"the formula needs {name!r}")
                _begin(name, pending)
                source = self.given[name]
                computed[name] = value(source) if _is_name(source) else result(source)
                pending.pop()
            return computed[name]

        def result(source: Source) -> Any:  # noqa: ANN401
            if isinstance(source, int | float):
                return source
            function = loaded(source)
            return function(*(value(name) for name in arguments_of(function)))

        return result(self.function)

    def text(self) -> str:
        """Return the source of the function that compiled code calls."""
        return _Composer(self).composed()[0]

    def check(self) -> None:
        """Raise if a function names an unknown quantity; functions not imported yet are trusted."""
        _Composer(self, trusting=True).composed()

    def bind(self, learned: Floats | None = None, **values: float) -> Score:
        """Return the formula with values for its parameters, and what the model learned."""
        if set(values) != set(self.parameters):
            raise ParameterError(
                f"the formula has the parameters {', '.join(self.parameters) or 'none'}, "
                f"not {', '.join(values) or 'none'}"
            )
        ordered = [float(values[name]) for name in self.parameters]
        numbers = NOTHING if learned is None else learned
        return Score(self, np.concatenate([ordered, numbers]))  # never empty: kernels point at it

    @cached_property
    def compiled(self) -> Any:  # noqa: ANN401 (Numba's own type)
        """The formula as kernels call it; compiled on first use."""
        from ebrank.kernels import pointers
        from ebrank.kernels.compiled import FirstClass  # Numba takes a while to import

        text, functions = _Composer(self).composed()
        home = loaded(self.function)
        names: dict[str, Any] = {**vars(sums), **functions, "__name__": home.__module__}
        for name in ("room", "shifted"):
            names[name] = getattr(pointers, name)
        exec(compile(text, home.__code__.co_filename, "exec"), names)
        made_of = (text, *functions.values())
        return FirstClass(names["formula"], self.frame.signature, made_of).compiled


@dataclass(frozen=True, eq=False)
class Score:
    """A formula with values for its parameters, ready to rank; `Formula.bind` makes one."""

    formula: Formula
    parameters: Floats

    def __post_init__(self) -> None:
        """Raise if kernels, which point at the parameters, would read beyond their end."""
        given = self.parameters
        floats = isinstance(given, np.ndarray) and given.dtype == np.float64 and given.ndim == 1
        if not floats or len(given) <= len(self.formula.parameters):
            raise ParameterError("a score needs an array of parameters: make it by Formula.bind")

    @property
    def compiled(self) -> Any:  # noqa: ANN401 (Numba's own type)
        """The function that kernels call."""
        return self.formula.compiled


class _Composer:
    """Writes a function that computes just what a formula needs, each quantity once."""

    def __init__(self, formula: Formula, *, trusting: bool = False) -> None:
        self._formula = formula
        self._frame = formula.frame
        self._trusting = trusting
        self._functions: dict[str, Function] = {}
        self._lines: list[str] = []
        self._done: set[str] = set()
        self._pending: list[str] = []
        self._before = formula.before
        self._needed: list[str] = []

    def composed(self) -> tuple[str, dict[str, Function]]:
        taken = {*self._frame.arguments, *self._frame.quantities, *self._formula.given}
        for name in self._formula.parameters:
            if name in taken:
                raise ParameterError(f"a quantity is called {name!r}; rename the parameter")
        result = self._call(self._formula.function)
        body = self._for_each_item(self._frame.result.format(result))
        if self._needed:
            self._before, user = (), loaded(self._formula.function)
            kept = [f"{name}_of[i] = {self._named(name, user)}" for name in self._needed]
            rooms = [f"{name}_of = room()" for name in self._needed]
            body = [*rooms, *self._for_each_item(*kept), *body]
        head = f"def formula({', '.join(self._frame.arguments)}):"
        numbers = [f"{name} = parameters[{at}]" for at, name in enumerate(self._formula.parameters)]
        return "\n    ".join([head, *numbers, *body]), self._functions

    def _for_each_item(self, *last: str) -> list[str]:
        """Return the lines so far and the last ones, in a loop if there is a batch of items."""
        lines = [*self._lines, *last]
        self._lines, self._done = [], set()
        if not self._frame.batch:
            return lines
        return ["for i in range(items):", *(f"    {line}" for line in lines)]

    def _call(self, source: Function | str) -> str:
        if self._trusting and isinstance(source, str):
            return ""
        function = loaded(source)
        names = [self._named(name, function) for name in arguments_of(function)]
        called = f"function_{len(self._functions)}"
        self._functions[called] = function
        return f"{called}({', '.join(names)})"

    def _named(self, name: str, user: Function) -> str:
        """Return what a quantity is called, after the line that computes it."""
        if name in self._before:
            if name not in self._needed:
                self._needed.append(name)
            return f"{name}_of[i]"
        if name in self._formula.parameters:
            return name
        if f"{name}_" not in self._done:
            _begin(name, self._pending)
            self._lines.append(f"{name}_ = {self._expression(name, user)}")
            self._pending.pop()
            self._done.add(f"{name}_")
        return f"{name}_"

    def _expression(self, name: str, user: Function) -> str:
        """Return the expression of a quantity that is explained by `given`, or else the frame."""
        source, quantities = self._formula.given.get(name), self._frame.quantities
        if isinstance(source, int | float):
            return repr(float(source))
        if source is not None:
            return self._named(source, user) if _is_name(source) else self._call(source)
        if name in quantities:
            return quantities[name].format(len(self._formula.parameters))
        raise ParameterError(
            f"{user.__name__} takes {name!r}, which is neither a quantity "
            f"({', '.join([*quantities, *self._formula.given])}) nor declared as a parameter"
        )


def arguments_of(function: Function) -> tuple[str, ...]:
    """Return the names of a plain function's arguments."""
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    if code is None:
        raise ParameterError(f"{function!r} is not a plain function")
    return tuple(code.co_varnames[: code.co_argcount])


def loaded(function: Function | str) -> Function:
    """Return a function that may be given as "module:function"."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    imported: Function = getattr(importlib.import_module(module), name)
    return imported


def _is_name(source: Source) -> TypeGuard[str]:
    """Return whether a quantity is another one, not a function, its path, or a constant."""
    return isinstance(source, str) and ":" not in source


def _begin(name: str, pending: list[str]) -> None:
    """Record that a quantity is being computed; raise if that needs the quantity itself."""
    if name in pending:
        raise ParameterError(f"{name} depends on itself: {' → '.join([*pending, name])}")
    pending.append(name)
