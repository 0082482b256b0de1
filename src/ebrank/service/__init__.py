"""EBRank behind a search box: rank and feedback over HTTP, nothing lost, new items found.

`core` decides and is free of any framework, `store` keeps, `learning` refits in a process of its
own, `insight` sums up for the dashboard, `http` speaks HTTP, `ops` starts and looks after it. The
equations, statistics and ranker are the library's.
"""
