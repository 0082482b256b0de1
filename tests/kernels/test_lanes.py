"""Lanes in compiled code against the same functions in plain Python, where they are arrays."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pytest

from ebrank.kernels.compiled import exact
from ebrank.kernels.lanes import (
    LANES,
    ROUNDER,
    exp_below_one,
    lanes_at,
    lanes_from,
    larger,
    largest,
    power_of_two,
    put_lanes,
    total,
)
from ebrank.typing import Floats


def arithmetic(numbers: Floats, out: Floats) -> None:
    first, second = lanes_at(numbers, 0), lanes_at(numbers, LANES)
    put_lanes(out, 0, 2.0 * first - second * 0.5 + (first + 1.0) * (3.0 - second))


def larger_ones(numbers: Floats, out: Floats) -> None:
    put_lanes(out, 0, larger(larger(lanes_at(numbers, 0), lanes_at(numbers, LANES)), -0.5))


def sums(numbers: Floats, out: Floats) -> None:
    out[0], out[1] = total(lanes_at(numbers, 3)), largest(lanes_at(numbers, 3))


def counted(numbers: Floats, out: Floats) -> None:
    put_lanes(out, 0, lanes_from(numbers[0]) + lanes_from(7))


def powers(numbers: Floats, out: Floats) -> None:
    put_lanes(out, 0, power_of_two(lanes_from(-1022.0) * 85.0 + (1022.0 * 84.0 + ROUNDER)))


@pytest.mark.parametrize("function", [arithmetic, larger_ones, sums, counted, powers])
def test_compiled_code_gives_the_same_bits(function: Callable[[Floats, Floats], None]) -> None:
    numbers = np.random.default_rng(1).normal(size=2 * LANES)
    plain, compiled = np.zeros(LANES), np.zeros(LANES)
    function(numbers, plain)
    numba.njit(function)(numbers, compiled)
    np.testing.assert_array_equal(plain, compiled)
    assert plain.any()


def exponentials(numbers: Floats, out: Floats) -> None:
    for first in range(0, len(numbers), LANES):
        put_lanes(out, first, exp_below_one(lanes_at(numbers, first)))


@pytest.mark.parametrize("function", [exponentials, exact(exponentials)])
def test_exponentials_to_eleven_digits(function: Callable[[Floats, Floats], None]) -> None:
    tiny = np.geomspace(1e-300, 1.0, 100 * LANES)
    x = np.concatenate([np.linspace(-700.0, 0.0, 1000 * LANES), -tiny])
    out = np.empty(len(x))
    function(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=5e-12)


@pytest.mark.parametrize("function", [exponentials, exact(exponentials)])
def test_exponentials_of_what_is_far_below_and_of_nan(
    function: Callable[[Floats, Floats], None],
) -> None:
    x = np.repeat([-np.inf, -1e300, -701.0, np.nan], LANES // 4)
    out = np.empty(LANES)
    function(x, out)
    np.testing.assert_allclose(out[:-6], np.exp(-700.0), rtol=1e-11)
    assert np.isnan(out[-6:]).all()
