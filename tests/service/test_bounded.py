from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.bounded import Bounded


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(1, 9))))
def test_it_keeps_the_latest_that_fit(uses: list[tuple[bool, int, int]]) -> None:
    bounded = Bounded[int, list[int]](20, len)
    model: dict[int, list[int]] = {}  # in the order of use
    for put, key, weight in uses:
        if put:
            value = [0] * weight
            bounded.put(key, value)
            model.pop(key, None)
            model[key] = value
            while sum(map(len, model.values())) > 20:
                del model[next(iter(model))]
        else:
            assert bounded.get(key) is model.get(key)
            if key in model:
                model[key] = model.pop(key)
    assert len(bounded) == len(model)
    assert [bounded.get(key) for key in model] == list(model.values())


def test_the_last_one_is_kept_whatever_it_weighs() -> None:
    bounded = Bounded[str, str](3, len)
    bounded.put("a", "a")
    bounded.put("long", "long")
    assert (bounded.get("a"), bounded.get("long")) == (None, "long")
