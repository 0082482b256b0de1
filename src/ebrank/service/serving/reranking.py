"""Rerank requests in the shape of Cohere's API: documents become items, a list becomes results.

>>> request = api.RerankRequest("tea", ["assam", "sencha", "assam"])
>>> as_list(request).items
['assam', 'sencha']
>>> listed = [api.RankedItem("sencha", 1, 0.4), api.RankedItem("assam", 2, 0.2)]
>>> response = reranked(request, api.RankResponse("r", 0, listed))
>>> [(result.index, result.relevance_score) for result in response.results]
[(1, 0.4), (0, 0.200001), (2, 0.2)]
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from ebrank.service import api
from ebrank.service.core.problems import Problem

GAP = 1e-6
"""By how much scores of neighbors differ at least: search engines keep them as float32, and
Elasticsearch adds 1 first; smaller differences would be lost, and with them the order."""

_META = {"api_version": {"version": "2"}}


def as_list(request: api.RerankRequest) -> api.RankRequest:
    """Return the request for the list of a request's documents.

    Raises:
        Problem: if a document cannot be the id of an item, or results in the order of the input
            would lack some.
    """
    names = _texts(request)
    for at, name in enumerate(names):
        if not 0 < len(name) <= api.LONGEST_NAME or "\0" in name:
            raise Problem(
                "a document must be the id of an item: a text of 1 to "
                f"{api.LONGEST_NAME} characters, without NUL",
                f"documents[{at}]",
            )
    if request.order == "input" and (request.top_n or len(names)) < len(names):
        raise Problem(
            f"results in the order of the input must be complete: leave out top_n, or send "
            f"{len(names)}",
            "top_n",
        )
    items = list(dict.fromkeys(names))
    return api.RankRequest(
        request.query,
        k=min(request.top_n or len(items), len(items)),
        items=list(items),
        user=request.user,
        count=request.count,
    )


def reranked(request: api.RerankRequest, answer: api.RankResponse) -> api.RerankResponse:
    """Return a list as the results of a rerank request.

    A document given twice has two results, one after the other. If a list from memory lacks some
    documents, they come last: nobody may lose a document on the way.
    """
    names = _texts(request)
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        places.setdefault(name, []).append(at)
    order = [(at, item.score) for item in answer.items for at in places.pop(item.id)]
    order += [(at, 0.0) for others in places.values() for at in others]
    order = order[: request.top_n]
    results = [
        api.RerankResult(
            at, score, api.RerankDocument(names[at]) if request.return_documents else UNSET
        )
        for (at, _), score in zip(order, decreasing([score for _, score in order]), strict=True)
    ]
    if request.order == "input":
        results.sort(key=lambda result: result.index)
    return api.RerankResponse(answer.ranking_id, results, _META)


def decreasing(scores: Sequence[float]) -> list[float]:
    """Return scores, raised where needed so that each is above the next.

    >>> [round(score, 6) for score in decreasing([0.1, 0.3, 0.3])]
    [0.300002, 0.300001, 0.3]
    """
    raised, least = [], -float("inf")
    for score in reversed(scores):
        raised.append(max(score, least))
        least = raised[-1] + GAP
    return raised[::-1]


def _texts(request: api.RerankRequest) -> list[str]:
    return [each if isinstance(each, str) else each.text for each in request.documents]
