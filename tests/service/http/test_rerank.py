"""The rerank endpoint: Cohere's official client, and what search engines send and read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any

import cohere
import httpx
import numpy as np
import pytest

from ebrank.client import Client
from ebrank.service.http.admission import new_token
from ebrank.service.settings import (
    FeaturesSettings,
    RankingSettings,
    Settings,
)
from tests.in_process import Local, in_process
from tests.service.faulty import FaultyStore
from tests.serving import serving

TEAS = ["assam", "sencha", "matcha", "white", "mate"]
ITEMS = {"items": [{"id": name, "features": [float(at)]} for at, name in enumerate(TEAS)]}
PRIOR = Settings(
    ranking=RankingSettings(unknown="prior"), features=FeaturesSettings(missing="mean")
)


@pytest.fixture
def local() -> Iterator[Local]:
    with in_process() as opened:
        opened.json("PUT", "/v1/queries/tea/items", ITEMS)
        yield opened


def shown(local: Local, query: str = "tea") -> dict[str, int]:
    items = local.json("GET", f"/v1/queries/{query}")["items"]
    return {item["id"]: item["shown"] for item in items}


def by_score(answer: dict[str, Any]) -> list[int]:
    """Return the order in which a caller shows documents that it sorts by their float32 scores."""
    scores = {
        each["index"]: np.float32(each["relevance_score"] + 1.0) for each in answer["results"]
    }
    return sorted(scores, key=lambda index: -scores[index])


def test_the_official_client_reranks_and_feedback_cites_the_list(tmp_path: Path) -> None:
    secret, token = new_token("shop", ["rank", "feedback", "admin"])
    scopes = json.dumps(token.scopes)
    config = f'[tokens.shop]\nsha256 = "{token.sha256}"\nscopes = {scopes}\n'
    with (
        serving(tmp_path / "store", config=config) as server,
        Client(server.address, token=secret) as ours,
        httpx.Client() as http,
    ):
        at: dict[str, Any] = {"base_url": server.address, "httpx_client": http}
        ours.put_items("tea", {name: [float(place)] for place, name in enumerate(TEAS)})
        second = cohere.ClientV2(secret, **at)
        answer = second.rerank(model="auto", query="tea", documents=TEAS, top_n=3)
        assert len(answer.results) == 3
        scores = [result.relevance_score for result in answer.results]
        assert scores == sorted(scores, reverse=True)
        assert ours.click(str(answer.id), TEAS[answer.results[0].index]).accepted == 1
        assert ours.rerank("tea", TEAS, order="input").results[2].index == 2
        with pytest.raises(cohere.UnauthorizedError):
            cohere.ClientV2("wrong", **at).rerank(model="auto", query="tea", documents=TEAS)
        with pytest.raises(cohere.UnprocessableEntityError, match="green"):
            second.rerank(model="auto", query="tea", documents=[*TEAS, "green"])
        ours.rank("tea")
        leaked = ours.retract(token="shop", apply=True)
        assert (leaked.rankings, leaked.events) == (3, 1)
        assert ours.retract(token="other").rankings == 0


# --- search engines: request templates and response paths as their documentation gives them ------

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "rerank.md").read_text(encoding="utf-8")
BLOCKS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
OPENSEARCH = next(block["actions"][0]["request_body"] for block in BLOCKS if "actions" in block)
OPENSEARCH_BY_FIELD = next(block["request_body"] for block in BLOCKS if "request_body" in block)
INFERENCE = next(block["service_settings"] for block in BLOCKS if "service_settings" in block)
PATHS = INFERENCE["response"]["json_parser"]


def sent(local: Local, template: str, **values: str) -> dict[str, Any]:
    """Send a rendered template, and return the answer."""
    body = Template(template.replace("${parameters.", "${")).substitute(values)
    answer = local.request("POST", "/v2/rerank", content=body.encode())
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def at_path(answer: dict[str, Any], path: str) -> list[Any]:
    """Return the values at a path such as `$.results[*].index`."""
    matched = re.fullmatch(r"\$\.(\w+)\[\*\]\.(\w+)", path)
    assert matched is not None
    return [each[matched.group(2)] for each in answer[matched.group(1)]]


def test_opensearch_reranks_through_its_cohere_connector(local: Local) -> None:
    hits = json.dumps(TEAS)
    answer = sent(local, OPENSEARCH, documents=hits, query="Tea", model="auto", top_n="5")
    # Its post-processor puts scores back into the order of the documents.
    assert sorted(at_path(answer, "$.results[*].index")) == list(range(5))
    assert by_score(answer) == at_path(answer, "$.results[*].index")
    assert shown(local) == dict.fromkeys(TEAS, 1)


def test_documents_may_be_objects_and_come_back(local: Local) -> None:
    texts = [{"text": name} for name in TEAS]
    body = {"query": "tea", "documents": texts, "return_documents": True}
    results = local.json("POST", "/v2/rerank", body)["results"]
    assert [each["document"] for each in results] == [texts[each["index"]] for each in results]
    assert {each["document"]["text"] for each in results} == set(TEAS)


def test_opensearch_deals_scores_out_in_the_order_of_the_answer(local: Local) -> None:
    hits = json.dumps(TEAS)
    answer = sent(local, OPENSEARCH_BY_FIELD, documents=hits, query="tea")
    assert at_path(answer, "$.results[*].index") == list(range(5))
    dealt = dict(zip(TEAS, at_path(answer, "$.results[*].relevance_score"), strict=True))
    sorted_hits = sorted(dealt, key=lambda name: -dealt[name])
    assert sorted_hits == [TEAS[index] for index in by_score(answer)]
    status, error = local.error(
        "POST", "/v2/rerank", json={"query": "tea", "documents": TEAS, "order": "input", "top_n": 2}
    )
    assert (status, error["field"]) == (422, "top_n")


def test_elasticsearch_reranks_through_a_custom_inference_endpoint(local: Local) -> None:
    texts, query = json.dumps(TEAS), json.dumps("tea")
    template = INFERENCE["request"]
    answer = sent(local, template, input=texts, query=query, top_n="5", return_documents="false")
    ranks = at_path(answer, PATHS["reranked_index"])
    scores = at_path(answer, PATHS["relevance_score"])
    rewritten = [np.float32(max(score, 0.0) + min(np.exp(score), 1.0)) for score in scores]
    assert all(above > below for above, below in pairwise(rewritten))
    assert sorted(ranks) == list(range(5))
    sent(local, template, input=texts, query=query, top_n="null", return_documents="null")


def test_scores_sort_into_the_served_order_whatever_decided_it() -> None:
    """Ties, an order the user has seen, and the caller's own in an experiment."""
    documents = [f"item {at}" for at in range(200)]
    for own in (False, True):
        with in_process(PRIOR) as local:
            if own:
                local.json("POST", "/v1/experiments", {"name": "look", "arms": {"own": "own"}})
            body = {"query": "tea", "documents": documents, "user": "ann"}
            first = local.json("POST", "/v2/rerank", body)
            order = [each["index"] for each in first["results"]]
            assert by_score(first) == order
            if own:
                assert order == list(range(200))
            click = {"ranking_id": first["id"], "item": documents[order[-1]], "type": "click"}
            local.json("POST", "/v1/feedback", {"events": [{"event_id": "1", **click}]})
            again = local.json("POST", "/v2/rerank", body)  # within the window
            assert by_score(again) == [each["index"] for each in again["results"]] == order
            assert set(shown(local).values()) == {1}


def test_unknown_documents_follow_the_setting(local: Local) -> None:
    status, error = local.error(
        "POST", "/v2/rerank", json={"query": "tea", "documents": ["assam", "green"]}
    )
    assert (status, error["field"]) == (422, "documents")
    assert "'green'" in error["message"]
    for bad in ("", "x" * 300, "a\0b"):
        status, error = local.error(
            "POST", "/v2/rerank", json={"query": "tea", "documents": ["assam", bad]}
        )
        assert (status, error["field"]) == (422, "documents[1]")
    with in_process(PRIOR) as other:  # which has never had an item
        for query in ("tea", "coffee"):
            answer = other.json(
                "POST", "/v2/rerank", {"query": query, "documents": ["a", "b", "a"]}
            )
            assert sorted(each["index"] for each in answer["results"]) == [0, 1, 2]
            assert shown(other, query) == {"a": 1, "b": 1}
        other.json("POST", "/v1/rank", {"query": "tea", "items": ["a", "c"]})
        assert shown(other) == {"a": 2, "b": 1, "c": 1}


def test_a_rerank_request_may_go_uncounted() -> None:
    with in_process(PRIOR) as local:
        body = {"query": "tea", "documents": ["a"]}
        local.json("POST", "/v2/rerank", body)
        assert local.json("POST", "/v2/rerank", {**body, "count": False})["id"] == "uncounted"
        assert shown(local) == {"a": 1}


def test_reranked_lists_count_like_others_and_tell_that_the_store_works_again() -> None:
    store = FaultyStore()
    body = {"query": "tea", "documents": TEAS, "user": "ann"}
    with in_process(store=store) as local:
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        local.json("POST", "/v2/rerank", body)
        store.full = True
        assert local.json("POST", "/v2/rerank", body)["id"] == "uncounted"
        served = local.json("POST", "/v1/rank", {"query": "tea", "k": 2, "user": "ann"})
        assert (served["counted"], served["ranking_id"]) == (False, "uncounted")
        assert local.error("GET", "/readyz")[0] == 503  # though lists are served
        store.full = False
        local.json("POST", "/v2/rerank", body)
        figures = local.request("GET", "/metrics").text
    expected = ("rankings_total 2.0", "slots_total 10.0", "uncounted_total 2.0", "store_failing 0")
    for line in expected:
        assert f"\nebrank_{line}" in figures
