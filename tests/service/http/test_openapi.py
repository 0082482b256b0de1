"""The document is right: what it allows is served, what it forbids is refused, nothing is a 5xx.

Its page, and the dashboard, are locked down.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest
from hypothesis import HealthCheck, settings

from ebrank.service.endpoints import ENDPOINTS
from ebrank.service.engine import Engine
from ebrank.service.http.openapi import document
from ebrank.service.http.pages import Pages
from ebrank.service.http.routes import Page
from tests.in_process import Local, in_process

if TYPE_CHECKING:  # takes a while to import
    from schemathesis import Case, SerializationContext
    from schemathesis.schemas import BaseSchema

EXAMPLES = 20
LONGEST = 50


def bounded(node: Any) -> Any:  # noqa: ANN401 (JSON)
    """Return a document without limits that only very long lists reach.

    The sweep of limits would send lists of 10,000 items with 10,000 features each, 80 MB of them.
    """
    if isinstance(node, list):
        return [bounded(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: bounded(value)
        for key, value in node.items()
        if not (key in ("maxItems", "maxProperties") and value > LONGEST)
    }


@cache
def schema() -> BaseSchema:
    """Return the document as Schemathesis reads it."""
    import schemathesis

    @schemathesis.serializer("application/x-ndjson")
    def lines(_: SerializationContext, value: object) -> bytes:
        """Send lines as they are."""
        return str(value).encode("utf-8", "surrogatepass")

    return schemathesis.openapi.from_dict(bounded(document()))


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    with in_process() as opened:
        items = [{"id": name, "features": [1.0, 2.0]} for name in "abc"]
        for query in ("tea", "0", "a"):
            opened.json("PUT", f"/v1/queries/{query}/items", {"items": items})
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"),
    [(route.method, route.path) for route in ENDPOINTS.values() if not route.hidden],
)
def test_answers_are_what_the_document_says(method: str, path: str, local: Local) -> None:
    # `schema().parametrize()` would make all cases while tests are collected, in every worker.
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.pytest._test_builder import build_operation_test

    @settings(
        max_examples=EXAMPLES,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    def check(case: Case[Any]) -> None:
        check_answer(case, local)

    build_operation_test(
        config=schema().config,
        operation=schema()[path][method],
        test_func=check,
        given_kwargs={},
        feedback=FeedbackSources(),
    )()


def check_answer(case: Case[Any], local: Local) -> None:
    """Send a case, and compare the answer with the document."""
    from schemathesis.checks import (
        ignored_auth,
        negative_data_rejection,
        positive_data_acceptance,
        unsupported_method,
    )

    sent = case.as_transport_kwargs(base_url="http://localhost")
    body = {"json": sent["json"]} if "json" in sent else {"content": sent.get("data") or b""}
    answer = local.request(
        case.method, sent["url"], headers=sent["headers"], params=sent.get("params"), **body
    )
    # Tokens and other methods have tests of their own; here the server is open.
    excluded = [ignored_auth, unsupported_method]
    if case.path in ("/v1/feedback", "/v1/items:bulk") or answer.status_code == 413:
        excluded.append(negative_data_rejection)  # a bad event or line is refused alone
    if case.path in ("/v1/rank", "/v1/queries/{query}/items", "/v1/items", "/v1/features"):
        excluded.append(positive_data_acceptance)  # features must fit those stored before
    if case.path == "/v1/experiments":
        excluded.append(positive_data_acceptance)  # only one runs at a time
    if case.path in ("/v2/rerank", "/v1/retractions"):
        excluded.append(positive_data_acceptance)  # documents must be items; times in order
    case.validate_response(answer, excluded_checks=excluded)


@pytest.mark.slow
def test_the_document_is_served_and_valid(local: Local) -> None:
    import schemathesis

    served = local.json("GET", "/openapi.json")
    schemathesis.openapi.from_dict(served).validate()
    assert served["openapi"].startswith("3.1")
    documented = {
        (method.upper(), path) for path, methods in served["paths"].items() for method in methods
    }
    shown = {(one.method, one.path) for one in ENDPOINTS.values() if not one.hidden}
    assert documented == shown


def test_the_documentation_page_names_every_endpoint(local: Local) -> None:
    page = local.request("GET", "/docs").text
    for route in ENDPOINTS.values():
        if not route.hidden:
            assert f'<span class="method">{route.method}</span>{route.path}</code>' in page
    for name in local.json("GET", "/openapi.json")["components"]["schemas"]:
        assert f'id="type-{name}"' in page


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_are_locked_down(local: Local, path: str) -> None:
    answer = local.request("GET", path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in answer.text
    assert " style=" not in answer.text
    assert "https://" not in answer.text


def test_what_serves_an_endpoint_returns_what_it_declares() -> None:
    for name, endpoint in ENDPOINTS.items():
        home = Pages if hasattr(Pages, name) else Engine
        gives = get_type_hints(getattr(home, name))["return"]
        assert gives is (Page if endpoint.gives is bytes else endpoint.gives), name
