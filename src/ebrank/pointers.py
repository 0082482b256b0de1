"""Pointers into arrays, for functions that kernels are handed as arguments.

An array handed to such a function is copied as a header of seven words and counted as a reference;
a pointer is one word. Pointers are indexed like arrays, so the same plain function takes either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def pointer_to(typing_context: Any, array: Any, row: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ANN401 (Numba's own types)
    """Return a pointer to the first number of a row, whatever the stride between rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        header = make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, header.strides)[0]
        offset = builder.mul(arguments[1], stride)
        place = builder.gep(builder.bitcast(header.data, ir.IntType(8).as_pointer()), [offset])
        return builder.bitcast(place, header.data.type)

    return types.CPointer(array.dtype)(array, types.intp), generate
