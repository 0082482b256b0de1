"""Two dozen numbers at a time, which compiled code keeps in the processor's vector registers.

Numba leaves it to LLVM to make vectors of a loop, and LLVM has long loops in mind: of one over two
dozen numbers it does some at once and the rest one by one. Lanes say what to do at once. They are
added, subtracted and multiplied with each other and with plain numbers; in plain Python they are
arrays, so that the same functions run there. A posterior on the grid of `auto` takes 41 ns by lanes
and 83 ns by plain loops, with lists of five and AVX-512.

>>> row = np.arange(30.0)
>>> total(2.0 * lanes_at(row, 6))  # the numbers 6 to 29
840.0
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model
from numba.np.arrayobj import make_array

LANES = 24
"""How many numbers are processed at a time."""

LOG2_E = 1.4426950408889634
LOWEST_EXPONENT = -700.0
ROUNDER = 1.5 * 2.0**52 + 1023.0
"""Adding this to a number rounds it: the sum has no bits for a fraction."""

Lanes: TypeAlias = Any
"""`LANES` numbers: an array, or in compiled code SIMD vectors."""
Memory: TypeAlias = Any
"""Contiguous numbers: an array, or in compiled code also a pointer."""


def lanes_at(numbers: Memory, first: int) -> Lanes:
    """Load the numbers that start at an index."""
    return np.array(numbers[first : first + LANES])


def put_lanes(numbers: Memory, first: int, values: Lanes) -> None:
    """Store numbers, starting at an index."""
    numbers[first : first + LANES] = values


def lanes_from(number: float) -> Lanes:
    """Return consecutive numbers, starting with this one."""
    return number + np.arange(float(LANES))


def larger(first: Lanes, second: Lanes) -> Lanes:
    """Return the larger number of each pair; NaN where the first is."""
    return np.where(second > first, second, first)


def above(first: Lanes, second: Lanes) -> Lanes:
    """Return 1 where the first number of a pair is larger, else 0."""
    return np.where(first > second, 1.0, 0.0)


def power_of_two(rounded: Lanes) -> Lanes:
    """Return 2ⁿ for whole numbers n from −1022 to 1023, to each of which ROUNDER was added.

    The last bits of the sum are those of n + 1023, and moved up they are those of an exponent.
    """
    return (rounded.view(np.int64) << 52).view(np.float64)


def total(values: Lanes) -> float:
    """Return the sum of all numbers, added by thirds, then by halves."""
    return float(_folded(values, np.add))


def largest(values: Lanes) -> float:
    """Return the largest number."""
    return float(_folded(values, np.maximum))


def exp_below_one(x: Lanes) -> Lanes:
    """Return exp(x) for numbers x ≤ 0, to 11 digits; that of −700 below −700.

    e^x is 2^n·2^r with |r| ≤ ½. The first factor is made of bits, the second a polynomial: that of
    degree 8 with the smallest relative error, its terms added in pairs, for one after the other
    would wait for each other.

    >>> print(f"{exp_below_one(np.full(LANES, -1.0))[0]:.10f}")
    0.3678794412
    """
    y = larger(x, LOWEST_EXPONENT) * LOG2_E
    rounded = y + ROUNDER
    r = y - (rounded - ROUNDER)
    rr = r * r
    low = (r * 0.6931471805465144 + 0.9999999999997624) + rr * (
        r * 0.055504109393409155 + 0.24022650698880413
    )
    high = (r * 0.0013333452062894875 + 0.009618128542841666) + rr * (
        r * 1.5309737280515e-05 + 0.00015403851764835255 + rr * 1.3175854705734042e-06
    )
    return (low + rr * rr * high) * power_of_two(rounded)


def _folded(values: Lanes, combine: np.ufunc) -> Any:  # noqa: ANN401 (a number of NumPy's)
    values = combine(combine(values[:_WIDTH], values[_WIDTH : 2 * _WIDTH]), values[2 * _WIDTH :])
    while len(values) > 1:
        half = len(values) // 2
        values = combine(values[:half], values[half:])
    return values[0]


# --- the same in compiled code -------------------------------------------------------------------

_PARTS = 3
_WIDTH = LANES // _PARTS
_PLACE = ir.IntType(32)
_VECTOR = ir.VectorType(ir.DoubleType(), _WIDTH)
_BITS = ir.VectorType(ir.IntType(64), _WIDTH)
_LAYOUT = ir.ArrayType(_VECTOR, _PARTS)


class _LanesType(types.Type):  # type: ignore[misc, unused-ignore]
    """Numba's type of lanes."""


_LANES, _NUMBER = _LanesType("Lanes"), types.float64


@register_model(_LanesType)  # type: ignore[misc, untyped-decorator, unused-ignore]
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc, unused-ignore]
    def __init__(self, manager: Any, kind: Any) -> None:  # noqa: ANN401 (Numba's own types)
        super().__init__(manager, kind, _LAYOUT)


def _compiled(
    function: Callable[..., Any], *signatures: tuple[Any, ...]
) -> Callable[[Callable[..., Any]], None]:
    """Make a function callable from compiled code; the decorated function emits its LLVM code.

    A signature is that of the result and the arguments, in types or classes of types.
    """

    class Template(AbstractTemplate):  # type: ignore[misc, unused-ignore]
        def generic(self, given: Any, _: Any) -> Any:  # noqa: ANN401
            for result, *kinds in signatures:
                if len(kinds) == len(given) and all(map(_fits, given, kinds)):
                    return signature(result, *map(_taken, given, kinds))
            return None

    def register(write: Callable[..., Any]) -> None:
        def generate(context: Any, builder: Any, kinds: Any, values: Any) -> Any:  # noqa: ANN401
            arguments = [
                make_array(kind)(context, builder, value).data if _is_array(kind) else value
                for kind, value in zip(kinds.args, values, strict=True)
            ]
            written = write(builder, *arguments)
            return context.get_dummy_value() if written is None else written

        infer_global(function)(Template)
        for _, *kinds in signatures:
            lower_builtin(function, *kinds)(generate)

    return register


def _is_array(kind: Any) -> bool:  # noqa: ANN401
    return isinstance(kind, types.Array)


def _fits(given: Any, kind: Any) -> bool:  # noqa: ANN401
    """Return whether an argument may be passed where some type is expected."""
    if isinstance(kind, type):
        return isinstance(given, kind)
    return given == kind or (kind == _NUMBER and isinstance(given, types.Number))


def _taken(given: Any, kind: Any) -> Any:  # noqa: ANN401
    return given if isinstance(kind, type) else kind


def _parts(builder: Any, value: Any) -> list[Any]:  # noqa: ANN401
    """Return the vectors of lanes; a number is broadcast to all of them."""
    if value.type == _LAYOUT:
        return [builder.extract_value(value, part) for part in range(_PARTS)]
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _PLACE(0))
    return [builder.shuffle_vector(first, first, _places([0] * _WIDTH))] * _PARTS


def _joined(builder: Any, parts: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the lanes that consist of some vectors."""
    lanes = ir.Constant(_LAYOUT, ir.Undefined)
    for i, part in enumerate(parts):
        lanes = builder.insert_value(lanes, part, i)
    return lanes


def _places(places: Sequence[int]) -> Any:  # noqa: ANN401
    return ir.Constant(ir.VectorType(_PLACE, len(places)), list(places))


def _address(builder: Any, numbers: Any, first: Any, part: int) -> Any:  # noqa: ANN401
    place = builder.add(first, first.type(part * _WIDTH))
    return builder.bitcast(builder.gep(numbers, [place]), _VECTOR.as_pointer())


def _maximum(builder: Any, first: Any, second: Any) -> Any:  # noqa: ANN401
    return builder.select(builder.fcmp_ordered(">", second, first), second, first)


def _all_combined(builder: Any, lanes: Any, combine: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401
    """Reduce lanes to one number: combine the vectors, then their halves."""
    first, second, third = _parts(builder, lanes)
    # A fixed order, so that sums have the same bits on every processor.
    values, width = combine(combine(first, second), third), _WIDTH
    while width > 1:
        width //= 2
        low, high = (_places(range(begin, begin + width)) for begin in (0, width))
        values = combine(
            builder.shuffle_vector(values, values, low),
            builder.shuffle_vector(values, values, high),
        )
    return builder.extract_element(values, _PLACE(0))


_PAIRS = (_LANES, _LANES, _LANES), (_LANES, _LANES, _NUMBER), (_LANES, _NUMBER, _LANES)
_MEMORY = types.CPointer, types.Array


@_compiled(lanes_at, *((_LANES, memory, types.Integer) for memory in _MEMORY))
def _lanes_at(builder: Any, numbers: Any, first: Any) -> Any:  # noqa: ANN401
    places = [_address(builder, numbers, first, part) for part in range(_PARTS)]
    return _joined(builder, [builder.load(place, align=8) for place in places])


@_compiled(put_lanes, *((types.void, memory, types.Integer, _LANES) for memory in _MEMORY))
def _put_lanes(builder: Any, numbers: Any, first: Any, lanes: Any) -> None:  # noqa: ANN401
    for part, values in enumerate(_parts(builder, lanes)):
        builder.store(values, _address(builder, numbers, first, part), align=8)


@_compiled(lanes_from, (_LANES, _NUMBER))
def _lanes_from(builder: Any, number: Any) -> Any:  # noqa: ANN401
    steps = [
        ir.Constant(_VECTOR, [float(part * _WIDTH + i) for i in range(_WIDTH)])
        for part in range(_PARTS)
    ]
    return _joined(builder, list(map(builder.fadd, _parts(builder, number), steps)))


@_compiled(power_of_two, (_LANES, _LANES))
def _power_of_two(builder: Any, rounded: Any) -> Any:  # noqa: ANN401
    up = ir.Constant(_BITS, [52] * _WIDTH)
    whole = [builder.bitcast(part, _BITS) for part in _parts(builder, rounded)]
    return _joined(builder, [builder.bitcast(builder.shl(n, up), _VECTOR) for n in whole])


@_compiled(total, (_NUMBER, _LANES))
def _total(builder: Any, lanes: Any) -> Any:  # noqa: ANN401
    return _all_combined(builder, lanes, builder.fadd)


@_compiled(largest, (_NUMBER, _LANES))
def _largest(builder: Any, lanes: Any) -> Any:  # noqa: ANN401
    return _all_combined(builder, lanes, lambda left, right: _maximum(builder, left, right))


def _is_above(builder: Any, first: Any, second: Any) -> Any:  # noqa: ANN401
    yes, no = (ir.Constant(_VECTOR, [value] * _WIDTH) for value in (1.0, 0.0))
    return builder.select(builder.fcmp_ordered(">", first, second), yes, no)


def _by_pairs(function: Callable[..., Any], combine: Callable[..., Any]) -> None:
    """Make a function or an operator take lanes, or lanes and a number."""

    @_compiled(function, *_PAIRS)
    def write(builder: Any, first: Any, second: Any) -> Any:  # noqa: ANN401
        pairs = zip(_parts(builder, first), _parts(builder, second), strict=True)
        return _joined(builder, [combine(builder, *pair) for pair in pairs])


_by_pairs(larger, _maximum)
_by_pairs(above, _is_above)
_by_pairs(operator.add, ir.IRBuilder.fadd)
_by_pairs(operator.sub, ir.IRBuilder.fsub)
_by_pairs(operator.mul, ir.IRBuilder.fmul)
