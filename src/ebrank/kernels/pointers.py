"""Pointers: into arrays for functions that kernels take, to such functions, and to memory.

An array passed to such a function is copied as a header of seven words and counted as a reference;
a pointer is one word. Pointers are indexed like arrays, so the same plain function takes either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from ebrank.typing import Floats

ROOM = 256
"""How many numbers fit into `room`."""


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def pointer_to(typing_context: Any, array: Any, row: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ANN401 (Numba's own types)
    """Return a pointer to the first number of a row, whatever the stride between rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        header = make_array(signature.args[0])(context, builder, arguments[0])
        return builder.bitcast(_row(builder, header, arguments[1]), header.data.type)

    return types.CPointer(array.dtype)(array, types.intp), generate


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def prefetch(typing_context: Any, array: Any, row: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ANN401
    """Let the cache fetch a row that will soon be written; any row number is harmless."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        header = make_array(signature.args[0])(context, builder, arguments[0])
        place = _row(builder, header, arguments[1])
        whole = ir.IntType(32)
        hint = ir.FunctionType(ir.VoidType(), [place.type, whole, whole, whole])
        call = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), hint)
        builder.call(call, [place, whole(1), whole(3), whole(1)])  # to write, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _row(builder: Any, header: Any, row: Any) -> Any:  # noqa: ANN401
    """Return the address of a row as a byte pointer."""
    stride = cgutils.unpack_tuple(builder, header.strides)[0]
    start = builder.bitcast(header.data, ir.IntType(8).as_pointer())
    return builder.gep(start, [builder.mul(row, stride)])


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def call_at(
    typing_context: Any,  # noqa: ANN401
    address: Any,  # noqa: ANN401
    arguments: Any,  # noqa: ANN401
) -> tuple[Any, Callable[..., Any]]:
    """Call the compiled formula at an address with a tuple of arguments (see `model.formula`).

    Numba takes some ten microseconds to examine a function that it is passed, and none for a
    number. The caller keeps the function alive.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:  # noqa: ANN401
        values = cgutils.unpack_tuple(builder, given[1])
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        builder.call(builder.inttoptr(given[0], kind.as_pointer()), values)
        return context.get_dummy_value()

    return types.void(types.intp, arguments), generate


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def shifted(typing_context: Any, pointer: Any, places: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ANN401
    """Return a pointer advanced by some numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.intp), generate


def room() -> Floats:
    """Return an uninitialized buffer of 256 numbers; in compiled code, on the stack."""
    return np.empty(ROOM)


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def _on_the_stack(typing_context: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ANN401
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return cgutils.alloca_once(builder, ir.DoubleType(), size=ROOM)

    return types.CPointer(types.float64)(), generate


@overload(room)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _room() -> Callable[..., Any]:
    return lambda: _on_the_stack()
