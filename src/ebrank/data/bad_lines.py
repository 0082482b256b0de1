"""What can be wrong with a line of LETOR text, in words.

The compiled scan reports a code and a position; `explain` turns them into a message.
"""

from __future__ import annotations

from typing import NamedTuple

from ebrank.data.limits import MAX_FEATURE, MAX_LABEL, MAX_QUERY_ID

LABEL, LABEL_RANGE, QUERY, QUERY_LENGTH, NO_FEATURES, NOT_TEXT = 1, 2, 3, 4, 5, 6
FEATURE, FEATURE_RANGE, FEATURE_ORDER, VALUE, OVERFLOW = 7, 8, 9, 10, 11

SHOWN = 40  # characters of a bad token that a message repeats


class BadLine(NamedTuple):
    """A bad line, counted from 1, what is wrong with it, and what to do."""

    line: int
    problem: str
    remedy: str


def explain(code: int, text: bytes, position: int) -> BadLine:
    """Return what is wrong at this position of the text."""
    line = text.count(b"\n", 0, position) + 1
    start = text.rfind(b"\n", 0, position) + 1
    content = text[start : text.find(b"\n", position)]
    strange = _byte_that_is_not_text(content)
    if strange is not None:
        problem = f"not text: byte 0x{content[strange]:02x} in column {strange + 1}"
        return BadLine(line, problem, "Give LETOR text, plain or gzip, not a binary file.")
    token = content[position - start :].partition(b"#")[0].decode().split(maxsplit=1)
    return BadLine(line, *_words(code, token[0] if token else ""))


def _byte_that_is_not_text(content: bytes) -> int | None:
    """Return the index of the first byte that does not occur in text."""
    zero = content.find(b"\0")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.start if zero < 0 else min(zero, error.start)
    return None if zero < 0 else zero


def _words(code: int, token: str) -> tuple[str, str]:
    """Return the problem and the remedy."""
    shown = repr(token if len(token) <= SHOWN else token[:SHOWN] + "…")
    if code == LABEL:
        if token.startswith("qid:"):
            return "label is missing", "Start the row with it, as in 2 qid:10 1:0.5."
        return f"label {shown} is not a whole number from 0 up", "Write it as in 2 qid:10 1:0.5."
    if code == LABEL_RANGE:
        return f"label {shown} is over {MAX_LABEL}", "Relevance labels are small whole numbers."
    if code == QUERY:
        problem = f"query id {shown} is malformed" if token else "query id is missing"
        if token and not token.startswith("qid:"):
            problem = f"query id is missing: found {shown} after the label"
        return problem, "Write it after the label, as in 2 qid:10 1:0.5."
    if code == QUERY_LENGTH:
        return f"query id {shown} is longer than {MAX_QUERY_ID} bytes", "Shorten it."
    if code == NO_FEATURES:
        return "row has no features", "Write at least one, as in 2 qid:10 1:0."
    return _words_on_features(code, token, shown)


def _words_on_features(code: int, token: str, shown: str) -> tuple[str, str]:
    """Return the problem and the remedy for one `id:value`."""
    feature, _, value = token.partition(":")
    value = repr(value if len(value) <= SHOWN else value[:SHOWN] + "…")
    feature = feature[:SHOWN]
    if code == FEATURE_RANGE:
        return f"feature id {feature} is not from 1 to {MAX_FEATURE}", "Renumber the features."
    if code == FEATURE_ORDER:
        problem = f"feature id {feature} does not come after the one before it"
        return problem, "List each feature once, in ascending order."
    if code == VALUE:
        problem = f"value {value} of feature {feature} is not a number"
        if value == "''":
            problem = f"value of feature {feature} is missing"
        elif value.strip("'+-").lower() in ("nan", "inf", "infinity"):
            problem = f"value {value} of feature {feature} is not finite"
        return problem, "Write it as in 1:0.5."
    if code == OVERFLOW:
        return f"value {shown} is too large for a 32-bit float", "Scale the feature down."
    return f"feature {shown} is malformed", "Write it as in 1:0.5."
