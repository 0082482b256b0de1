from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel
from ebrank.testing import plain

KEYS = st.integers(0, 2**64 - 1)
INDICES = st.integers(0, 2**62)

# Draws are seeded: a right generator passes unless one seed in a million was met.
RARE = 1e-6


@kernel
def keys_below(key: np.uint64, n: int) -> npt.NDArray[np.uint64]:
    keys = np.empty(n, np.uint64)
    for i in range(n):
        keys[i] = streams.child(key, i)
    return keys


def draws(draw: Callable[[np.uint64], float], key: int, n: int) -> npt.NDArray[np.float64]:
    return np.array([draw(k) for k in keys_below(np.uint64(key), n)])


def test_children_of_zero_are_the_published_numbers_of_splitmix64() -> None:
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert keys_below(np.uint64(0), 4).tolist() == published
    assert [plain.child(0, i) for i in range(4)] == published


@given(KEYS, INDICES, st.integers(1, 10_000))
def test_agrees_with_plain_python(key: int, index: int, n: int) -> None:
    word = np.uint64(key)
    assert int(streams.mix(word)) == plain.mix(key)
    assert int(streams.child(word, index)) == plain.child(key, index)
    assert streams.uniform(word) == plain.uniform(key)
    assert streams.open_uniform(word) == plain.open_uniform(key)
    assert streams.below(word, n) == plain.below(key, n)
    assert streams.normal(word) == pytest.approx(plain.normal(key), rel=1e-12, abs=1e-12)
    assert streams.gumbel(word) == pytest.approx(plain.gumbel(key), rel=1e-12, abs=1e-12)
    root = streams.trial_key(key - 2**63, n)
    assert isinstance(root, np.uint64)
    assert int(root) == plain.trial_key(key - 2**63, n)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**30, 1.5, "1", True, None])
def test_refuses_seeds_that_are_no_seeds(seed: object) -> None:
    with pytest.raises(ParameterError, match="seed must be a whole number"):
        streams.trial_key(seed, 0)  # type: ignore[arg-type]


def unmixed(z: int) -> int:
    """The key that `mix` turns into z."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9)):
        z ^= z >> shift ^ z >> 2 * shift
        z = z * pow(factor, -1, 2**64) % 2**64
    return z ^ z >> 30 ^ z >> 60


@pytest.mark.parametrize("bits", [0, 2**64 - 1, 2**11 - 1, 2**64 - 2**11])
def test_extreme_bits_give_finite_numbers_in_range(bits: int) -> None:
    word = np.uint64(unmixed(bits))
    assert 0.0 <= streams.uniform(word) < 1.0
    assert 0.0 < streams.open_uniform(word) <= 1.0
    assert np.isfinite(streams.normal(word))
    assert np.isfinite(streams.gumbel(word))


@pytest.mark.parametrize("key", [0, 1, 2**63, plain.trial_key(1, 0)])
def test_distributions(key: int) -> None:
    n = 20_000
    for draw, law in (
        (streams.uniform, scipy.stats.uniform),
        (streams.open_uniform, scipy.stats.uniform),
        (streams.normal, scipy.stats.norm),
        (streams.gumbel, scipy.stats.gumbel_r),
    ):
        assert scipy.stats.kstest(draws(draw, key, n), law.cdf).pvalue > RARE
    dice = np.bincount([streams.below(k, 6) for k in keys_below(np.uint64(key), n)], minlength=6)
    assert len(dice) == 6
    assert scipy.stats.chisquare(dice).pvalue > RARE
