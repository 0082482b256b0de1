"""The tables, the functions that write to them in one call, and how both come into being.

Names are UTF-8 as bytes: PostgreSQL's text holds no zero character, and compares by a language's
rules. The query leads every key that is unique, so that a cluster can be cut along it; other
indexes are local to a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import LIFE

if TYPE_CHECKING:
    import asyncpg

VERSION = 1
UNFINISHED = -VERSION
"""The version of a store that is being copied: nobody may use it yet."""
ORDINALS = 2**20
"""How many entries one write may hold: an entry's number is that of its write times this, and its
place there."""

TURNS = 16
"""How many recent writes to a query the store can repeat to a server that missed them."""

_COUNTS = """CREATE TABLE {name} (
    query bigint NOT NULL, place integer NOT NULL, outcome smallint NOT NULL,
    slot smallint NOT NULL, count integer NOT NULL, epoch integer NOT NULL,
    PRIMARY KEY (query, place, outcome, slot)) WITH (fillfactor = 70)"""

TABLES = (
    # `version` counts the writes to a query since it began, `size` its items. Each write locks
    # its row.
    """CREATE TABLE queries (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name bytea NOT NULL UNIQUE,
        version bigint NOT NULL, size integer NOT NULL, last_time float8 NOT NULL)
        WITH (fillfactor = 50)""",
    # Other tables know an item by its place among those of its query, from 0.
    """CREATE TABLE items (
        query bigint NOT NULL, place integer NOT NULL, id bytea NOT NULL, entered float8 NOT NULL,
        active boolean NOT NULL, first_shown float8, features bytea NOT NULL,
        PRIMARY KEY (query, place), UNIQUE (query, id)) WITH (fillfactor = 80)""",
    # What queries share, by the item's name; NULL of an item that was removed.
    "CREATE TABLE catalog (id bytea PRIMARY KEY, version bigint NOT NULL, features bytea)",
    "CREATE INDEX catalog_versions ON catalog (version)",
    _COUNTS.format(name="evidence"),
    _COUNTS.format(name="snapshot"),  # what was rolled up adds up to this
    # What the latest writes added to counts, a row for each, in turn; and which items they showed
    # first. A write of anything else leaves a gap. A crash may take all of it: then servers forget
    # what this could bring up to date.
    """CREATE UNLOGGED TABLE changes (
        query bigint NOT NULL, turn smallint NOT NULL, version bigint NOT NULL,
        places integer[], outcomes smallint[], slots smallint[], amounts integer[],
        shown integer[], times float8[], PRIMARY KEY (query, turn)) WITH (fillfactor = 50)""",
    # Rankings and events share one sequence: the order of the log. Lists are JSON: of places, and
    # in `seen` of ranks, and in `contexts` of numbers.
    """CREATE TABLE rankings (
        query bigint NOT NULL, seq bigint NOT NULL, id bytea NOT NULL, time float8 NOT NULL,
        model integer NOT NULL, items text NOT NULL, counted boolean NOT NULL,
        explored bytea NOT NULL, relevance bytea NOT NULL, cost float8 NOT NULL, user_hash bytea,
        would_rank text, ranks_above integer NOT NULL, continues bytea, seen text,
        bot boolean NOT NULL, epoch integer NOT NULL, contexts text, UNIQUE (id, query))""",
    "CREATE INDEX rankings_order ON rankings (seq)",
    """CREATE TABLE events (
        query bigint NOT NULL, seq bigint NOT NULL, event_id bytea NOT NULL,
        ranking_id bytea NOT NULL, place integer NOT NULL, type bytea NOT NULL,
        rank integer NOT NULL, outcome smallint NOT NULL, replaces smallint NOT NULL,
        shows boolean NOT NULL, time float8 NOT NULL, received float8 NOT NULL,
        bot boolean NOT NULL, value float8, epoch integer NOT NULL,
        PRIMARY KEY (query, ranking_id, place, type), UNIQUE (query, event_id))""",
    "CREATE INDEX events_order ON events (seq)",
    "CREATE SEQUENCE writes",
    """CREATE TABLE minutes (
        start float8 NOT NULL, name bytea NOT NULL, value float8 NOT NULL,
        PRIMARY KEY (start, name))""",
    """CREATE TABLE models (
        version integer PRIMARY KEY, created float8 NOT NULL, rows bigint NOT NULL,
        validation_loss float8, previous_loss float8, activated boolean NOT NULL,
        reason bytea NOT NULL, features bytea NOT NULL, document bytea NOT NULL)""",
    """CREATE TABLE deletions (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, time float8 NOT NULL,
        kind text NOT NULL, digest bytea NOT NULL, queries integer NOT NULL,
        rankings integer NOT NULL, events integer NOT NULL)""",
    # Who is there, and what each says of itself.
    """CREATE UNLOGGED TABLE servers (
        name bytea PRIMARY KEY, seen timestamptz NOT NULL, about bytea NOT NULL)""",
    "CREATE TABLE meta (key bytea PRIMARY KEY, value bytea NOT NULL)",
    """CREATE TABLE state (
        one integer PRIMARY KEY CHECK (one = 1), active_model integer NOT NULL,
        last_time float8 NOT NULL, catalog bigint NOT NULL, lives bigint NOT NULL,
        schema_version integer NOT NULL)""",
    f"INSERT INTO state VALUES (1, 0, 0, 0, 0, {VERSION})",
    # What a write is given: as the tables have it, but queries and entries are counted from 1 and
    # 0 within the write. Events that bear on each other are in rounds, one after the other.
    """CREATE TYPE given_event AS (
        query integer, seq integer, event_id bytea, ranking_id bytea, place integer, type bytea,
        rank integer, outcome smallint, shows boolean, time float8, received float8, bot boolean,
        value float8, epoch integer, replaces smallint, slot smallint, round integer)""",
    "CREATE TYPE given_first AS (query integer, seq integer, place integer, time float8)",
)

_STEPS = """unnest(step_queries, step_places, step_outcomes, step_slots, step_amounts)
    AS g (query, place, outcome, slot, amount)"""
_CHANGED = """ON CONFLICT (query, turn) DO UPDATE SET version = excluded.version,
    places = excluded.places, outcomes = excluded.outcomes, slots = excluded.slots,
    amounts = excluded.amounts, shown = excluded.shown, times = excluded.times"""

_WRITE = f"""CREATE FUNCTION write_log(
    names bytea[], lives bigint[], remembered bigint[], times float8[], lists rankings[],
    step_queries integer[], step_places integer[], step_outcomes smallint[],
    step_slots smallint[], step_amounts integer[], firsts given_first[], given given_event[],
    adds boolean,
    OUT numbers bigint[], OUT versions bigint[], OUT active_model integer, OUT catalog bigint,
    OUT logged integer[], OUT outcomes smallint[], OUT replaced smallint[], OUT showing boolean[],
    OUT known integer[], OUT news changes[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    begin_seq bigint;
    shown boolean;
    behind boolean;
    first given_first[];
    first_places integer[];
    first_times float8[];
BEGIN
    IF cardinality(names) > 1 THEN  -- in one order: two writes never wait for each other
        PERFORM 1 FROM queries WHERE name = ANY (names) ORDER BY number FOR UPDATE;
    END IF;
    WITH advanced AS (
        UPDATE queries AS q SET version = q.version + 1, last_time = greatest(q.last_time, g.last)
        FROM unnest(names, lives, remembered, times) WITH ORDINALITY
            AS g (name, life, version, last, at)
        WHERE q.name = g.name AND coalesce(q.version / {LIFE} = g.life, true)
        RETURNING g.at, q.number, q.version, g.version < q.version - 1 AS behind)
    SELECT array_agg(a.number ORDER BY a.at), array_agg(a.version ORDER BY a.at), bool_or(a.behind)
        INTO numbers, versions, behind FROM advanced AS a;
    IF coalesce(cardinality(numbers), 0) != cardinality(names) THEN
        RAISE no_data_found;
    END IF;
    SELECT s.active_model, s.catalog INTO active_model, catalog FROM state AS s;
    IF cardinality(names) = 0 THEN
        RETURN;
    END IF;
    begin_seq := nextval('writes') * {ORDINALS};
    IF cardinality(lists) > 0 THEN
        INSERT INTO rankings SELECT numbers[g.query], begin_seq + g.seq, g.id, g.time, g.model,
            g.items, g.counted, g.explored, g.relevance, g.cost, g.user_hash, g.would_rank,
            g.ranks_above, g.continues, g.seen, g.bot, g.epoch, g.contexts
            FROM unnest(lists) AS g;
    END IF;
    IF cardinality(step_queries) > 0 THEN
        INSERT INTO evidence AS e
            SELECT numbers[g.query], g.place, g.outcome, g.slot, g.amount, 0
            FROM {_STEPS}
            ON CONFLICT (query, place, outcome, slot) DO UPDATE
            SET count = e.count + excluded.count;
    END IF;
    shown := cardinality(firsts) > 0;
    IF cardinality(given) > 0 THEN
        FOR turn IN 1 .. (SELECT max(g.round) FROM unnest(given) AS g) LOOP
            -- An event counts if it is better than those before it, of which none was negative
            -- (-1), or if it is the first that is; it shows its item if none of them did.
            INSERT INTO events SELECT numbers[g.query], begin_seq + g.seq, g.event_id, g.ranking_id,
                g.place, g.type, g.rank,
                CASE WHEN b.worst < 0 OR b.best >= g.outcome AND g.outcome > 0 THEN 0
                    ELSE g.outcome END,
                CASE WHEN g.replaces > 0 THEN g.replaces
                    WHEN b.worst >= 0 AND (b.best < g.outcome OR g.outcome < 0) THEN b.best
                    ELSE 0 END,
                g.shows AND NOT coalesce(b.shown, false), g.time, g.received, g.bot, g.value,
                g.epoch FROM unnest(given) AS g LEFT JOIN LATERAL (
                    SELECT max(v.outcome) AS best, min(v.outcome) AS worst,
                        bool_or(v.shows) AS shown
                    FROM events AS v WHERE v.query = numbers[g.query]
                    AND v.ranking_id = g.ranking_id AND v.place = g.place) AS b ON true
                WHERE g.round = turn ORDER BY g.seq
                ON CONFLICT DO NOTHING;
        END LOOP;
        SELECT array_agg(v.seq - begin_seq), array_agg(v.outcome), array_agg(v.replaces),
            array_agg(v.shows), shown OR bool_or(v.shows)
            INTO logged, outcomes, replaced, showing, shown
            FROM events AS v WHERE v.seq >= begin_seq AND v.seq < begin_seq + {ORDINALS};
        IF coalesce(cardinality(logged), 0) < cardinality(given) THEN
            SELECT array_agg(g.seq) INTO known FROM unnest(given) AS g JOIN events AS v
                ON v.query = numbers[g.query] AND v.event_id = g.event_id
                AND v.seq < begin_seq + g.seq;
        END IF;
    END IF;
    IF adds AND cardinality(given) > 0 THEN
        WITH steps AS (
            SELECT g.query, v.place, step.outcome, g.slot, sum(step.amount) AS amount
            FROM unnest(given) AS g JOIN events AS v ON v.seq = begin_seq + g.seq
            CROSS JOIN LATERAL (VALUES (0, v.shows::integer),
                (v.outcome, (v.outcome > 0)::integer),
                (v.replaces, -(v.replaces > 0)::integer)) AS step (outcome, amount)
            WHERE step.amount != 0 GROUP BY g.query, v.place, step.outcome, g.slot
            HAVING sum(step.amount) != 0),
        added AS (
            INSERT INTO evidence AS e
                SELECT numbers[query], place, outcome, slot, amount, 0 FROM steps
                ON CONFLICT (query, place, outcome, slot) DO UPDATE
                SET count = e.count + excluded.count)
        SELECT step_queries || array_agg(s.query), step_places || array_agg(s.place),
            step_outcomes || array_agg(s.outcome::smallint), step_slots || array_agg(s.slot),
            step_amounts || array_agg(s.amount::integer)
            INTO step_queries, step_places, step_outcomes, step_slots, step_amounts
            FROM steps AS s;
    END IF;
    IF shown THEN
        WITH set AS (
            UPDATE items AS i SET first_shown = s.time FROM (
                SELECT DISTINCT ON (f.query, f.place) f.query, f.place, f.time FROM (
                    SELECT numbers[g.query] AS query, g.place, g.time, begin_seq + g.seq AS seq
                    FROM unnest(firsts) AS g
                    UNION ALL SELECT v.query, v.place, v.received, v.seq FROM events AS v
                    WHERE v.seq >= begin_seq AND v.seq < begin_seq + {ORDINALS} AND v.shows) AS f
                ORDER BY f.query, f.place, f.seq) AS s
                WHERE i.query = s.query AND i.place = s.place AND i.first_shown IS NULL
                RETURNING i.query, i.place, i.first_shown)
        SELECT array_agg((array_position(numbers, s.query), 0, s.place, s.first_shown)::given_first)
            INTO first FROM set AS s;
    END IF;
    IF adds AND cardinality(names) = 1 THEN
        SELECT array_agg(g.place), array_agg(g.time) INTO first_places, first_times
            FROM unnest(first) AS g;
        INSERT INTO changes VALUES (numbers[1], versions[1] % {TURNS}, versions[1], step_places,
            step_outcomes, step_slots, step_amounts, first_places, first_times)
            {_CHANGED};
    ELSIF adds THEN
        INSERT INTO changes SELECT n.number, versions[n.at] % {TURNS}, versions[n.at],
            s.places, s.outcomes, s.slots, s.amounts, f.places, f.times
            FROM unnest(numbers) WITH ORDINALITY AS n (number, at)
            LEFT JOIN (
                SELECT g.query, array_agg(g.place) AS places, array_agg(g.outcome) AS outcomes,
                    array_agg(g.slot) AS slots, array_agg(g.amount) AS amounts
                FROM {_STEPS} GROUP BY g.query) AS s ON s.query = n.at
            LEFT JOIN (
                SELECT g.query, array_agg(g.place) AS places, array_agg(g.time) AS times
                FROM unnest(first) AS g GROUP BY g.query) AS f ON f.query = n.at
            {_CHANGED};
    END IF;
    IF behind THEN
        SELECT array_agg(c ORDER BY c.version) INTO news
            FROM unnest(numbers, versions, remembered) AS q (number, version, known)
            JOIN changes AS c ON c.query = q.number AND c.version > q.known
                AND c.version < q.version
            WHERE q.known BETWEEN q.version - {TURNS} AND q.version - 2;
    END IF;
END $$"""

_PUT = f"""CREATE FUNCTION put_items(
    query_name bytea, names bytea[], numbers bytea[], at float8, OUT new_version bigint)
LANGUAGE plpgsql AS $$
DECLARE
    known bigint;
    items_before integer;
    added integer;
BEGIN
    SELECT q.number, q.size INTO known, items_before FROM queries AS q
        WHERE q.name = query_name FOR UPDATE;
    IF known IS NULL THEN
        INSERT INTO queries (name, version, size, last_time)
            SELECT query_name, s.lives * {LIFE}, 0, 0 FROM state AS s ON CONFLICT DO NOTHING;
        SELECT q.number, q.size INTO known, items_before FROM queries AS q
            WHERE q.name = query_name FOR UPDATE;
    END IF;
    UPDATE items AS i SET features = g.numbers, active = true
        FROM unnest(names, numbers) AS g (name, numbers) WHERE i.query = known AND i.id = g.name;
    INSERT INTO items SELECT known, items_before + row_number() OVER (ORDER BY g.place) - 1,
        g.name, at, true, NULL, g.numbers
        FROM unnest(names, numbers) WITH ORDINALITY AS g (name, numbers, place) WHERE NOT EXISTS
            (SELECT 1 FROM items AS i WHERE i.query = known AND i.id = g.name);
    GET DIAGNOSTICS added = ROW_COUNT;
    UPDATE queries AS q SET version = q.version + 1, size = q.size + added,
        last_time = greatest(q.last_time, at) WHERE q.number = known
        RETURNING q.version INTO new_version;
END $$"""

FUNCTIONS = (_WRITE, _PUT)

MIGRATIONS: dict[int, tuple[str, ...]] = {}
"""What makes a store of a version one of the next: there has been one version so far."""


async def version_of(connection: asyncpg.Connection, schema: str) -> int | None:
    """Return the version of the store in a schema, None if there is none."""
    if await connection.fetchval("SELECT to_regclass($1)", f"{quoted(schema)}.state") is None:
        return None
    return int(await connection.fetchval("SELECT schema_version FROM state"))


async def check(connection: asyncpg.Connection, schema: str, name: str) -> bool:
    """Return whether there is a store; if there is, it is one of this version.

    Raises:
        StoreError: if it belongs to another version of ebrank.
    """
    version = await version_of(connection, schema)
    if version == UNFINISHED:
        raise StoreError(
            f"{name}: an unfinished copy. Run the same `ebrank store copy` again to go on with it, "
            f"or DROP SCHEMA {quoted(schema)} CASCADE."
        )
    if version not in (None, VERSION):
        remedy = "Upgrade ebrank" if version > VERSION else "Run `ebrank store migrate` on it"
        raise StoreError(
            f"{name}: a store of version {version}; this ebrank reads version {VERSION}. "
            f"{remedy}, or name another schema."
        )
    return version is not None


async def make(connection: asyncpg.Connection, schema: str) -> None:
    """Make the tables and functions, within a transaction."""
    there = await connection.fetchval("SELECT to_regnamespace($1)::oid", quoted(schema))
    if there is None:
        await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
    for statement in (*TABLES, *FUNCTIONS):
        await connection.execute(statement)


async def migrate(connection: asyncpg.Connection, schema: str, name: str) -> int:
    """Bring a store up to this version; return the version that it had.

    Raises:
        StoreError: if there is none, or it is newer, or there is no way.
    """
    async with connection.transaction():
        version = await version_of(connection, schema)
        if version is None:
            raise StoreError(f"{name}: there is no store. Run `ebrank store init`.")
        for step in range(version, VERSION):
            if step not in MIGRATIONS:
                raise StoreError(f"{name}: a store of version {version}, too old to migrate.")
            for statement in MIGRATIONS[step]:
                await connection.execute(statement)
            await connection.execute("UPDATE state SET schema_version = $1", step + 1)
        await check(connection, schema, name)
    return version


def quoted(name: str) -> str:
    """Return an identifier as SQL.

    >>> quoted("my store")
    '"my store"'
    """
    return '"' + name.replace('"', '""') + '"'
