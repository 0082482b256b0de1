"""EBRank behind a search box: rank and feedback over HTTP, nothing lost, new items found.

`engine` decides and is free of any framework, `store` keeps, `trainer` refits in a process of its
own, `app` speaks HTTP. The equations, statistics and ranker are the library's.
"""
