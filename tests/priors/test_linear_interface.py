"""The linear prior as an object: parameters, copies, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ebrank import LinearPrior, ParameterError
from tests.priors.made_up import made_up


def test_it_behaves_like_a_scikit_learn_estimator() -> None:
    features, stats = made_up(100, 2, seed=11)
    prior = LinearPrior(3.0, l2=0.5)
    assert repr(prior) == "LinearPrior(beta=3.0, l2=0.5)"
    twin = clone(prior)
    assert twin.get_params() == prior.get_params()
    prior.fit(features, stats)
    again = pickle.loads(pickle.dumps(prior))
    np.testing.assert_array_equal(again.predict(features)[0], prior.predict(features)[0])
    with pytest.raises(ParameterError, match="has no parameter 'gamma'"):
        prior.set_params(gamma=1)
    with pytest.raises(ParameterError, match="l2"):
        prior.set_params(l2=-1.0)
    assert prior.l2 == 0.5


@pytest.mark.parametrize(
    "bad",
    [
        {"beta": 0.0},
        {"beta": float("nan")},
        {"estimator": "clicks"},
        {"l2": -1.0},
        {"min_impressions": -1},
        {"patience": 0},
        {"max_iterations": 0},
        {"tolerance": 0.0},
        {"threads": 0},
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(bad))):
        LinearPrior(**bad)


def test_bad_data_is_refused_in_words() -> None:
    features, stats = made_up(20, 2, seed=12)
    fitted = LinearPrior(warm_start=True).fit(features, stats)
    with pytest.raises(ParameterError, match="behavior of 19"):
        LinearPrior().fit(features, stats[:19])
    with pytest.raises(ParameterError, match="matrix"):
        LinearPrior().fit(features[0], stats)
    with pytest.raises(ParameterError, match="2 features, not 1"):
        fitted.predict(features[:, :1])
    with pytest.raises(ParameterError, match="2 features, not 1"):
        fitted.fit(features[:, :1], stats)
    broken = features.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ParameterError, match="not finite"):
        LinearPrior().fit(broken, stats)
    with pytest.raises(ParameterError, match="row 7"):
        fitted.predict(broken)
    with pytest.raises(ParameterError, match="validation features hold"):
        LinearPrior().fit(features, stats, validation=(broken, stats))
    wide = np.ones((20, 500), np.float32)
    with pytest.raises(ParameterError, match="validation has 500 features, training 2"):
        LinearPrior().fit(features, stats, validation=(wide, stats))
