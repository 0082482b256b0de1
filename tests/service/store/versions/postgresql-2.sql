SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
CREATE SCHEMA ebrank;
CREATE TYPE ebrank.given_event AS (
	query integer,
	seq integer,
	event_id bytea,
	ranking_id bytea,
	place integer,
	type bytea,
	rank integer,
	outcome smallint,
	shows boolean,
	"time" double precision,
	received double precision,
	bot boolean,
	value double precision,
	epoch integer,
	replaces smallint,
	slot smallint,
	round integer
);
CREATE TYPE ebrank.given_first AS (
	query integer,
	seq integer,
	place integer,
	"time" double precision
);
CREATE FUNCTION ebrank.put_items(query_name bytea, names bytea[], numbers bytea[], at double precision, OUT new_version bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    known bigint;
    items_before integer;
    added integer;
BEGIN
    SELECT q.number, q.size INTO known, items_before FROM queries AS q
        WHERE q.name = query_name FOR UPDATE;
    IF known IS NULL THEN
        INSERT INTO queries (name, version, size, last_time, used)
            SELECT query_name, s.lives * 4294967296, 0, 0, at FROM state AS s ON CONFLICT DO NOTHING;
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
END $$;
CREATE UNLOGGED TABLE ebrank.changes (
    query bigint NOT NULL,
    turn smallint NOT NULL,
    version bigint NOT NULL,
    places integer[],
    outcomes smallint[],
    slots smallint[],
    amounts integer[],
    shown integer[],
    times double precision[]
)
WITH (fillfactor='50');
CREATE TABLE ebrank.rankings (
    query bigint NOT NULL,
    seq bigint NOT NULL,
    id bytea NOT NULL,
    "time" double precision NOT NULL,
    model integer NOT NULL,
    items text NOT NULL,
    counted boolean NOT NULL,
    explored bytea NOT NULL,
    relevance bytea NOT NULL,
    cost double precision NOT NULL,
    user_hash bytea,
    would_rank text,
    ranks_above integer NOT NULL,
    continues bytea,
    seen text,
    bot boolean NOT NULL,
    epoch integer NOT NULL,
    contexts text
);
CREATE FUNCTION ebrank.write_log(names bytea[], lives bigint[], remembered bigint[], times double precision[], lists ebrank.rankings[], step_queries integer[], step_places integer[], step_outcomes smallint[], step_slots smallint[], step_amounts integer[], firsts ebrank.given_first[], given ebrank.given_event[], adds boolean, OUT numbers bigint[], OUT versions bigint[], OUT active_model integer, OUT catalog bigint, OUT logged integer[], OUT outcomes smallint[], OUT replaced smallint[], OUT showing boolean[], OUT known integer[], OUT news ebrank.changes[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
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
        UPDATE queries AS q SET version = q.version + 1,
            last_time = greatest(q.last_time, g.last), used = greatest(q.used, g.last)
        FROM unnest(names, lives, remembered, times) WITH ORDINALITY
            AS g (name, life, version, last, at)
        WHERE q.name = g.name AND coalesce(q.version / 4294967296 = g.life, true)
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
    begin_seq := nextval('writes') * 1048576;
    IF cardinality(lists) > 0 THEN
        INSERT INTO rankings SELECT numbers[g.query], begin_seq + g.seq, g.id, g.time, g.model,
            g.items, g.counted, g.explored, g.relevance, g.cost, g.user_hash, g.would_rank,
            g.ranks_above, g.continues, g.seen, g.bot, g.epoch, g.contexts
            FROM unnest(lists) AS g;
    END IF;
    IF cardinality(step_queries) > 0 THEN
        INSERT INTO evidence AS e
            SELECT numbers[g.query], g.place, g.outcome, g.slot, g.amount, 0
            FROM unnest(step_queries, step_places, step_outcomes, step_slots, step_amounts)
    AS g (query, place, outcome, slot, amount)
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
            FROM events AS v WHERE v.seq >= begin_seq AND v.seq < begin_seq + 1048576;
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
                    WHERE v.seq >= begin_seq AND v.seq < begin_seq + 1048576 AND v.shows) AS f
                ORDER BY f.query, f.place, f.seq) AS s
                WHERE i.query = s.query AND i.place = s.place AND i.first_shown IS NULL
                RETURNING i.query, i.place, i.first_shown)
        SELECT array_agg((array_position(numbers, s.query), 0, s.place, s.first_shown)::given_first)
            INTO first FROM set AS s;
    END IF;
    IF adds AND cardinality(names) = 1 THEN
        SELECT array_agg(g.place), array_agg(g.time) INTO first_places, first_times
            FROM unnest(first) AS g;
        INSERT INTO changes VALUES (numbers[1], versions[1] % 16, versions[1], step_places,
            step_outcomes, step_slots, step_amounts, first_places, first_times)
            ON CONFLICT (query, turn) DO UPDATE SET version = excluded.version,
    places = excluded.places, outcomes = excluded.outcomes, slots = excluded.slots,
    amounts = excluded.amounts, shown = excluded.shown, times = excluded.times;
    ELSIF adds THEN
        INSERT INTO changes SELECT n.number, versions[n.at] % 16, versions[n.at],
            s.places, s.outcomes, s.slots, s.amounts, f.places, f.times
            FROM unnest(numbers) WITH ORDINALITY AS n (number, at)
            LEFT JOIN (
                SELECT g.query, array_agg(g.place) AS places, array_agg(g.outcome) AS outcomes,
                    array_agg(g.slot) AS slots, array_agg(g.amount) AS amounts
                FROM unnest(step_queries, step_places, step_outcomes, step_slots, step_amounts)
    AS g (query, place, outcome, slot, amount) GROUP BY g.query) AS s ON s.query = n.at
            LEFT JOIN (
                SELECT g.query, array_agg(g.place) AS places, array_agg(g.time) AS times
                FROM unnest(first) AS g GROUP BY g.query) AS f ON f.query = n.at
            ON CONFLICT (query, turn) DO UPDATE SET version = excluded.version,
    places = excluded.places, outcomes = excluded.outcomes, slots = excluded.slots,
    amounts = excluded.amounts, shown = excluded.shown, times = excluded.times;
    END IF;
    IF behind THEN
        SELECT array_agg(c ORDER BY c.version) INTO news
            FROM unnest(numbers, versions, remembered) AS q (number, version, known)
            JOIN changes AS c ON c.query = q.number AND c.version > q.known
                AND c.version < q.version
            WHERE q.known BETWEEN q.version - 16 AND q.version - 2;
    END IF;
END $$;
CREATE TABLE ebrank.catalog (
    id bytea NOT NULL,
    version bigint NOT NULL,
    features bytea
);
CREATE TABLE ebrank.deletions (
    number bigint NOT NULL,
    "time" double precision NOT NULL,
    kind text NOT NULL,
    digest bytea NOT NULL,
    queries integer NOT NULL,
    rankings integer NOT NULL,
    events integer NOT NULL
);
ALTER TABLE ebrank.deletions ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ebrank.deletions_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE ebrank.events (
    query bigint NOT NULL,
    seq bigint NOT NULL,
    event_id bytea NOT NULL,
    ranking_id bytea NOT NULL,
    place integer NOT NULL,
    type bytea NOT NULL,
    rank integer NOT NULL,
    outcome smallint NOT NULL,
    replaces smallint NOT NULL,
    shows boolean NOT NULL,
    "time" double precision NOT NULL,
    received double precision NOT NULL,
    bot boolean NOT NULL,
    value double precision,
    epoch integer NOT NULL
);
CREATE TABLE ebrank.evidence (
    query bigint NOT NULL,
    place integer NOT NULL,
    outcome smallint NOT NULL,
    slot smallint NOT NULL,
    count integer NOT NULL,
    epoch integer NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE ebrank.items (
    query bigint NOT NULL,
    place integer NOT NULL,
    id bytea NOT NULL,
    entered double precision NOT NULL,
    active boolean NOT NULL,
    first_shown double precision,
    features bytea NOT NULL
)
WITH (fillfactor='80');
CREATE TABLE ebrank.meta (
    key bytea NOT NULL,
    value bytea NOT NULL
);
CREATE TABLE ebrank.minutes (
    start double precision NOT NULL,
    name bytea NOT NULL,
    value double precision NOT NULL
);
CREATE TABLE ebrank.models (
    version integer NOT NULL,
    created double precision NOT NULL,
    rows bigint NOT NULL,
    validation_loss double precision,
    previous_loss double precision,
    activated boolean NOT NULL,
    reason bytea NOT NULL,
    features bytea NOT NULL,
    document bytea NOT NULL
);
CREATE TABLE ebrank.queries (
    number bigint NOT NULL,
    name bytea NOT NULL,
    version bigint NOT NULL,
    size integer NOT NULL,
    last_time double precision NOT NULL,
    used double precision NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ebrank.queries ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME ebrank.queries_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE UNLOGGED TABLE ebrank.servers (
    name bytea NOT NULL,
    seen timestamp with time zone NOT NULL,
    about bytea NOT NULL
);
CREATE TABLE ebrank.snapshot (
    query bigint NOT NULL,
    place integer NOT NULL,
    outcome smallint NOT NULL,
    slot smallint NOT NULL,
    count integer NOT NULL,
    epoch integer NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE ebrank.state (
    one integer NOT NULL,
    active_model integer NOT NULL,
    last_time double precision NOT NULL,
    catalog bigint NOT NULL,
    lives bigint NOT NULL,
    schema_version integer NOT NULL,
    CONSTRAINT state_one_check CHECK ((one = 1))
);
CREATE SEQUENCE ebrank.writes
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
INSERT INTO ebrank.catalog VALUES ('\x6930', 1, '\x00000000');
INSERT INTO ebrank.catalog VALUES ('\x6931', 1, '\x0000003e');
INSERT INTO ebrank.catalog VALUES ('\x6932', 1, '\x0000803e');
INSERT INTO ebrank.catalog VALUES ('\x6934', 1, '\x0000003f');
INSERT INTO ebrank.catalog VALUES ('\x6935', 1, '\x0000203f');
INSERT INTO ebrank.catalog VALUES ('\x6936', 1, '\x0000403f');
INSERT INTO ebrank.catalog VALUES ('\x6937', 1, '\x0000603f');
INSERT INTO ebrank.changes VALUES (1, 2, 2, '{4,5,0,5,2,4,5,0,1,5,4,5,0,5}', '{0,0,0,0,0,0,0,0,0,2,1,2,1,1}', '{4,5,0,1,2,3,0,1,5,5,4,1,0,0}', '{2,1,1,1,2,2,1,1,1,1,1,1,1,1}', NULL, NULL);
INSERT INTO ebrank.changes VALUES (2, 2, 2, '{2,4,3,5,4,2,0,5,5,0,0,4,2,5,4,2}', '{0,0,0,0,0,0,0,0,0,0,1,1,1,2,2,2}', '{0,1,2,3,0,1,4,5,2,3,4,0,0,5,1,1}', '{1,1,2,2,2,2,1,1,1,1,1,2,1,1,1,1}', '{3,4}', '{1700064800,1700064800}');
INSERT INTO ebrank.changes VALUES (3, 2, 2, '{4,1,3,2,5,3,3,4,5,1,3,0,3,4,3,5,3,4}', '{0,0,0,0,0,0,0,0,0,0,0,0,2,1,1,1,2,2}', '{0,1,2,3,4,5,0,1,2,3,1,3,1,0,0,4,5,1}', '{2,1,1,1,1,1,1,1,2,1,1,1,1,1,1,1,1,1}', '{2,3}', '{1700072000,1700072000}');
INSERT INTO ebrank.deletions OVERRIDING SYSTEM VALUE VALUES (1, 1700172800, 'query', '\x65323532363635343735373162316432', 1, 4, 6);
INSERT INTO ebrank.deletions OVERRIDING SYSTEM VALUE VALUES (2, 1700172800, 'item', '\x35663465636264306234313862663938', 3, 0, 0);
INSERT INTO ebrank.deletions OVERRIDING SYSTEM VALUE VALUES (3, 1700172800, 'user', '\x65383130356166363361646566616462', 0, 3, 0);
INSERT INTO ebrank.events VALUES (1, 1048577, '\x382d636c69636b', '\x363061333138313538383030302d65653232323966373764366235366363', 4, '\x636c69636b', 5, 1, 0, false, 1700057600, 1700057600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1, 1048578, '\x382d7075726368617365', '\x363061333138313538383030302d65653232323966373764366235366363', 5, '\x7075726368617365', 6, 2, 0, false, 1700057600, 1700057600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048580, '\x392d636c69636b', '\x363061333332653766633830302d64343933656536383965383631356263', 2, '\x636c69636b', 1, 1, 0, false, 1700064800, 1700064800, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048581, '\x392d7075726368617365', '\x363061333332653766633830302d64343933656536383965383631356263', 4, '\x7075726368617365', 2, 2, 0, false, 1700064800, 1700064800, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048582, '\x392d68696465', '\x363061333332653766633830302d64343933656536383965383631356263', 3, '\x68696465', 3, -1, 0, false, 1700064800, 1700064800, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1, 1048585, '\x31322d636c69636b', '\x363061333833356635613030302d36626561633035663134633031656366', 0, '\x636c69636b', 1, 1, 0, false, 1700086400, 1700086400, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1, 1048586, '\x31322d7075726368617365', '\x363061333833356635613030302d36626561633035663134633031656366', 5, '\x7075726368617365', 2, 2, 0, false, 1700086400, 1700086400, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048588, '\x31332d636c69636b', '\x363061333965333163653830302d30366130396135393835336236356538', 4, '\x636c69636b', 1, 1, 0, false, 1700093600, 1700093600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048589, '\x31332d7075726368617365', '\x363061333965333163653830302d30366130396135393835336236356538', 2, '\x7075726368617365', 2, 2, 0, false, 1700093600, 1700093600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048590, '\x31332d68696465', '\x363061333965333163653830302d30366130396135393835336236356538', 3, '\x68696465', 3, -1, 0, false, 1700093600, 1700093600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (3, 1048592, '\x31342d636c69636b', '\x363061336239303434333030302d39363866313361303139376438643664', 5, '\x636c69636b', 5, 1, 0, false, 1700100800, 1700100800, false, NULL, 0);
INSERT INTO ebrank.events VALUES (3, 1048593, '\x31342d7075726368617365', '\x363061336239303434333030302d39363866313361303139376438643664', 3, '\x7075726368617365', 6, 2, 0, false, 1700100800, 1700100800, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1, 1048595, '\x31362d636c69636b', '\x363061336565613932633030302d33623664653839313963383137386139', 5, '\x636c69636b', 1, 1, 0, false, 1700115200, 1700115200, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048597, '\x31372d636c69636b', '\x363061343039376261303830302d36336363356565336239626135383432', 0, '\x636c69636b', 5, 1, 0, false, 1700122400, 1700122400, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048598, '\x31372d7075726368617365', '\x363061343039376261303830302d36336363356565336239626135383432', 5, '\x7075726368617365', 6, 2, 0, false, 1700122400, 1700122400, false, NULL, 0);
INSERT INTO ebrank.events VALUES (3, 1048600, '\x31382d636c69636b', '\x363061343234346531353030302d39343335376439653437353663646135', 3, '\x636c69636b', 1, 1, 0, false, 1700129600, 1700129600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (3, 1048601, '\x31382d7075726368617365', '\x363061343234346531353030302d39343335376439653437353663646135', 4, '\x7075726368617365', 2, 2, 0, false, 1700129600, 1700129600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (3, 1048602, '\x31382d68696465', '\x363061343234346531353030302d39343335376439653437353663646135', 5, '\x68696465', 3, -1, 0, false, 1700129600, 1700129600, false, NULL, 0);
INSERT INTO ebrank.events VALUES (2, 1048605, '\x32312d636c69636b', '\x363061343734633537323830302d39613636613462303266613566626336', 4, '\x636c69636b', 1, 1, 0, false, 1700151200, 1700151200, false, NULL, 0);
INSERT INTO ebrank.events VALUES (3, 1048607, '\x32322d636c69636b', '\x363061343866393765373030302d30323161376634643635356566636334', 4, '\x636c69636b', 1, 1, 0, false, 1700158400, 1700158400, false, NULL, 0);
INSERT INTO ebrank.events VALUES (3, 1048608, '\x32322d7075726368617365', '\x363061343866393765373030302d30323161376634643635356566636334', 3, '\x7075726368617365', 2, 2, 0, false, 1700158400, 1700158400, false, NULL, 0);
INSERT INTO ebrank.evidence VALUES (1, 0, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 1, 0, 2, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 1, 0, 3, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 2, 0, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 2, 1, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 3, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 4, 0, 2, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 1, 0, 2, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 1, 0, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 1, 0, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 1, 1, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 2, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 4, 0, 4, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 0, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 3, 0, 2, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 0, 3, 3, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 0, 0, 3, 0);
INSERT INTO ebrank.evidence VALUES (3, 1, 0, 1, 2, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 2, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 2, 0, 3, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 0, 0, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 2, 0, 2, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 4, 0, 3, 3, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 0, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 0, 1, 2, 0);
INSERT INTO ebrank.evidence VALUES (3, 5, 0, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 0, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 0, 0, 1, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 0, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 5, 0, 2, 3, 0);
INSERT INTO ebrank.evidence VALUES (3, 1, 0, 3, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 1, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 0, 2, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 0, 3, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 0, 0, 3, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 2, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 1, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 4, 1, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 0, 1, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 1, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 1, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 1, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 1, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 1, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 5, 1, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 2, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 2, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 2, 1, 1, 0);
INSERT INTO ebrank.items VALUES (1, 0, '\x6930', 1700000000, true, 1700028800, '\xec0f233f7c218a3e');
INSERT INTO ebrank.items VALUES (1, 1, '\x6931', 1700000000, true, 1700000000, '\xdbd3273df764873c');
INSERT INTO ebrank.items VALUES (1, 2, '\x6932', 1700000000, true, 1700028800, '\x7a32503f59aa693f');
INSERT INTO ebrank.items VALUES (1, 3, '\x656272616e6b3a64656c657465643a65363863343036393332626238663139', 1700000000, false, 1700000000, '\x0000c07f0000c07f');
INSERT INTO ebrank.items VALUES (1, 4, '\x6934', 1700000000, true, 1700000000, '\x022b0b3fe8606f3f');
INSERT INTO ebrank.items VALUES (1, 5, '\x6935', 1700000000, true, 1700000000, '\xc7db503f6978333b');
INSERT INTO ebrank.items VALUES (2, 0, '\x6930', 1700000000, true, 1700007200, '\xec0f233f7c218a3e');
INSERT INTO ebrank.items VALUES (2, 1, '\x6931', 1700000000, true, 1700007200, '\xdbd3273df764873c');
INSERT INTO ebrank.items VALUES (2, 2, '\x6932', 1700000000, true, 1700007200, '\x7a32503f59aa693f');
INSERT INTO ebrank.items VALUES (2, 5, '\x6935', 1700000000, false, 1700007200, '\xc7db503f6978333b');
INSERT INTO ebrank.items VALUES (3, 0, '\x6930', 1700000000, true, 1700043200, '\xec0f233f7c218a3e');
INSERT INTO ebrank.items VALUES (3, 1, '\x6931', 1700000000, true, 1700014400, '\xdbd3273df764873c');
INSERT INTO ebrank.items VALUES (3, 4, '\x6934', 1700000000, true, 1700014400, '\x022b0b3fe8606f3f');
INSERT INTO ebrank.items VALUES (3, 5, '\x6935', 1700000000, true, 1700043200, '\xc7db503f6978333b');
INSERT INTO ebrank.items VALUES (2, 3, '\x656272616e6b3a64656c657465643a65363863343036393332626238663139', 1700000000, false, 1700064800, '\x0000c07f0000c07f');
INSERT INTO ebrank.items VALUES (2, 4, '\x6934', 1700000000, true, 1700064800, '\x022b0b3fe8606f3f');
INSERT INTO ebrank.items VALUES (3, 2, '\x6932', 1700000000, true, 1700072000, '\x7a32503f59aa693f');
INSERT INTO ebrank.items VALUES (3, 3, '\x656272616e6b3a64656c657465643a65363863343036393332626238663139', 1700000000, false, 1700072000, '\x0000c07f0000c07f');
INSERT INTO ebrank.meta VALUES ('\x6265686176696f7273', '\x5b22636c69636b222c20227075726368617365225d');
INSERT INTO ebrank.meta VALUES ('\x6665617475726573', '\x7b226665617475726573223a5b5b227030222c6e756c6c5d2c5b227031222c6e756c6c5d2c5b227330222c227072696365225d5d2c2272656d6f766564223a5b5d7d');
INSERT INTO ebrank.meta VALUES ('\x66697273745f6974656d', '\x313730303030303030302e30');
INSERT INTO ebrank.meta VALUES ('\x6c6561726e65645f66726f6d', '\x3120');
INSERT INTO ebrank.meta VALUES ('\x71756572795f6e616d6573', '\x6e6f726d616c697a6564');
INSERT INTO ebrank.meta VALUES ('\x726566757365645f73696e6365', '\x');
INSERT INTO ebrank.meta VALUES ('\x73616c74', '\x3736663935623031393261633463336663303464353238376466373661356162');
INSERT INTO ebrank.meta VALUES ('\x746f74616c73', '\x7b226974656d73223a2032342c202271756572696573223a20342c202272616e6b696e6773223a2032342c20226576656e7473223a2033392c2022636c69636b73223a2033337d');
INSERT INTO ebrank.minutes VALUES (1699999980, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1699999980, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1699999980, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1699999980, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1699999980, '\x6d733533', 1);
INSERT INTO ebrank.minutes VALUES (1699999980, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1699999980, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x636c69636b735f6e6577', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x6576656e7473', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x6d733135', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x636c69636b735f6e6577', 2);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x6578706f737572655f6e6577', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x6d733135', 1);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700014380, '\x73686f776e', 2);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x636c69636b735f6e6577', 2);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x6576656e7473', 3);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x6d733134', 1);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700021580, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x636c69636b735f6e6577', 2);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x6576656e7473', 3);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x6d733136', 1);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700028780, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700035980, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700035980, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700035980, '\x6578706f737572655f6e6577', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700035980, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700035980, '\x6d733135', 1);
INSERT INTO ebrank.minutes VALUES (1700035980, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700035980, '\x73686f776e', 2);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x636c69636b735f6e6577', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x6576656e7473', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x6d733232', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x636c69636b735f6e6577', 2);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x6d733135', 1);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700050380, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x636c69636b735f6e6577', 2);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x6578706f737572655f6e6577', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x6d733135', 1);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700057580, '\x73686f776e', 2);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x636c69636b735f6e6577', 2);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x6576656e7473', 3);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x6d733134', 1);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700064780, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700071980, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700071980, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700071980, '\x6578706f737572655f6e6577', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700071980, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700071980, '\x6d733137', 1);
INSERT INTO ebrank.minutes VALUES (1700071980, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700071980, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x636c69636b735f6e6577', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x6576656e7473', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x6578706f737572655f6e6577', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x6578706f737572655f6f6c64', 0);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x6d733134', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, '\x73686f776e', 2);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x6d733136', 1);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700086380, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x6576656e7473', 3);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x6d733232', 1);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700093580, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x6578706f737572655f6f6c64', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x6d733136', 1);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700100780, '\x73686f776e', 2);
INSERT INTO ebrank.minutes VALUES (1700107980, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700107980, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700107980, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700107980, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700107980, '\x6d733136', 1);
INSERT INTO ebrank.minutes VALUES (1700107980, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700107980, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x636c69636b735f6f6c64', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x6576656e7473', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x6d733134', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x6578706c6f726174696f6e5f636f7374', -1.0464959033724261e-05);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x6578706f737572655f6f6c64', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x6d733232', 1);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700122380, '\x73686f776e', 2);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x6576656e7473', 3);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x6d733135', 1);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700129580, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x6576656e7473', 3);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x6d733136', 1);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700136780, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700143980, '\x6578706c6f726174696f6e5f636f7374', -0.0033419657115736543);
INSERT INTO ebrank.minutes VALUES (1700143980, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700143980, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700143980, '\x6578706f737572655f6f6c64', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700143980, '\x6d733136', 1);
INSERT INTO ebrank.minutes VALUES (1700143980, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700143980, '\x73686f776e', 2);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x636c69636b735f6f6c64', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x6576656e7473', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x6578706c6f726174696f6e5f636f7374', 0.0005118489075186258);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x6d733236', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x6578706c6f726174696f6e5f636f7374', 0.0019004374214830035);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x6578706c6f726564', 1);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x6578706f737572655f6f6c64', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x6d733136', 1);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700158380, '\x73686f776e', 4);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x636c69636b735f6f6c64', 2);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x6576656e7473', 2);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x6578706c6f726174696f6e5f636f7374', 0);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x6578706c6f726564', 0);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x6578706f737572655f6e6577', 0);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x6578706f737572655f6f6c64', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x6d733135', 1);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x72616e6b696e6773', 1);
INSERT INTO ebrank.minutes VALUES (1700165580, '\x73686f776e', 2);
INSERT INTO ebrank.models VALUES (1, 1700165600, 9, 0.1, 0.2, true, '\x697420697320626574746572', '\x5b5d', '\x7b0a2022666f726d6174223a2022656272616e6b2d6d6f64656c222c0a202276657273696f6e223a20332c0a2022706f6c696379223a2022656272616e6b222c0a20226578616d696e6174696f6e223a207b0a2020227365766572697479223a20312e302c0a2020226375746f6666223a206e756c6c2c0a2020226375727665223a206e756c6c0a207d2c0a20227363616c696e67223a206e756c6c2c0a202273656564223a20302c0a20227374617465223a207b0a20202277656967687473223a207b0a202020227368617065223a205b0a20202020310a2020205d2c0a2020202276616c756573223a205b0a20202020312e300a2020205d0a20207d2c0a202022696e74657263657074223a207b0a202020227368617065223a205b0a20202020310a2020205d2c0a2020202276616c756573223a205b0a20202020302e300a2020205d0a20207d2c0a2020227269646765223a207b0a202020227368617065223a205b0a20202020310a2020205d2c0a2020202276616c756573223a205b0a20202020302e3030310a2020205d0a20207d0a207d0a7d');
INSERT INTO ebrank.queries OVERRIDING SYSTEM VALUE VALUES (1, '\x746561', 2, 6, 1700172800, 1700172800);
INSERT INTO ebrank.queries OVERRIDING SYSTEM VALUE VALUES (2, '\x636f66666565', 2, 6, 1700172800, 1700172800);
INSERT INTO ebrank.queries OVERRIDING SYSTEM VALUE VALUES (3, '\x6772c3bc6e65722074656520f09f8db5', 2, 6, 1700172800, 1700172800);
INSERT INTO ebrank.rankings VALUES (1, 1048576, '\x363061333138313538383030302d65653232323966373764366235366363', 1700057600, 0, '[4,5]', true, '\x0000', '\x4ea7bcf31911c33f8dcfb69d5676c23f', 0, '\x36326333326565336262303564643231', NULL, 4, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (2, 1048579, '\x363061333332653766633830302d64343933656536383965383631356263', 1700064800, 0, '[2,4,3,5]', true, '\x00000000', '\x6e73e88176d1c73f21c6faac4581c53f21c6faac4581c53f34be1af06454c43f', 0, '\x32393137373234613630343232633666', NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (3, 1048583, '\x363061333464626137313030302d30643862646161363963373361383865', 1700072000, 0, '[4,1,3,2]', true, '\x00000000', '\xeedf6bc47166d23f0a49296863a0c73f21c6faac4581c53f21c6faac4581c53f', 0, '\x62653533646135646134333838336234', NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (1, 1048584, '\x363061333833356635613030302d36626561633035663134633031656366', 1700086400, 0, '[0,5,2,4]', true, '\x00000000', '\x85185ff25149d23f031d57a63700d03f6e73e88176d1c73ff642780dd8e8c63f', 0, NULL, NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (2, 1048587, '\x363061333965333163653830302d30366130396135393835336236356538', 1700093600, 0, '[4,2,3,5]', true, '\x00000000', '\x85185ff25149d23fc01ae9e9cc9cc93f42a5ddb6851fc43f1b78eb513741c33f', 0, '\x36326333326565336262303564643231', NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (3, 1048591, '\x363061336239303434333030302d39363866313361303139376438643664', 1700100800, 0, '[5,3]', true, '\x0000', '\x42a5ddb6851fc43f42a5ddb6851fc43f', 0, '\x32393137373234613630343232633666', NULL, 4, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (1, 1048594, '\x363061336565613932633030302d33623664653839313963383137386139', 1700115200, 0, '[5,0,2,4]', true, '\x00000000', '\x000e64a15555d53feedf6bc47166d23f3c54f90e887cc63f69fff0fa6ed3c53f', 0, '\x39633261363430336331643634633035', NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (2, 1048596, '\x363061343039376261303830302d36336363356565336239626135383432', 1700122400, 0, '[0,5]', true, '\x0000', '\x39a16f0cbfe2c23f183e4bb24c45c23f', -1.0464959033724261e-05, NULL, NULL, 4, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (3, 1048599, '\x363061343234346531353030302d39343335376439653437353663646135', 1700129600, 0, '[3,4,5,1]', true, '\x00000000', '\x7e74848a8755d13f7acbfadd135bd03f5283dffc1e15c83fa0fa95a710e5c53f', 0, '\x36326333326565336262303564643231', NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (1, 1048603, '\x363061343539663266653030302d36306533636336653661376366383964', 1700144000, 0, '[4,1]', true, '\x0000', '\x35a230f3fbd2c43f4ea7bcf31911c33f', -0.0033419657115736543, '\x62653533646135646134333838336234', NULL, 4, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (2, 1048604, '\x363061343734633537323830302d39613636613462303266613566626336', 1700151200, 0, '[4,2,5,0]', true, '\x00000000', '\xeedf6bc47166d23fba4e6eae2a7dd23f472c03034905d03f3d57c825afb3c63f', 0.0005118489075186258, '\x39633261363430336331643634633035', NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.rankings VALUES (3, 1048606, '\x363061343866393765373030302d30323161376634643635356566636334', 1700158400, 0, '[4,3,5,0]', true, '\x00000001', '\x01c66a65b81ed53fced5cb98b18cd13fed56cdb97db3c63f34be1af06454c43f', 0.0019004374214830035, NULL, NULL, 0, NULL, NULL, false, 0, NULL);
INSERT INTO ebrank.snapshot VALUES (1, 0, 0, 1, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 0, 2, 1, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 1, 0, 2, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 1, 0, 3, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 2, 0, 0, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 2, 1, 0, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 3, 0, 1, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 4, 0, 2, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 4, 0, 3, 1, 0);
INSERT INTO ebrank.snapshot VALUES (1, 5, 0, 0, 1, 0);
INSERT INTO ebrank.snapshot VALUES (2, 0, 0, 1, 1, 0);
INSERT INTO ebrank.snapshot VALUES (2, 0, 0, 5, 1, 0);
INSERT INTO ebrank.snapshot VALUES (2, 1, 0, 2, 1, 0);
INSERT INTO ebrank.snapshot VALUES (2, 1, 0, 4, 1, 0);
INSERT INTO ebrank.snapshot VALUES (2, 2, 0, 0, 1, 0);
INSERT INTO ebrank.snapshot VALUES (2, 2, 1, 0, 1, 0);
INSERT INTO ebrank.snapshot VALUES (2, 5, 0, 3, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 0, 0, 3, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 1, 0, 1, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 1, 0, 4, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 1, 1, 4, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 4, 0, 0, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 4, 0, 5, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 4, 1, 0, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 4, 2, 5, 1, 0);
INSERT INTO ebrank.snapshot VALUES (3, 5, 0, 2, 1, 0);
INSERT INTO ebrank.state VALUES (1, 1, 1700172800, 1, 0, 2);
SELECT pg_catalog.setval('ebrank.deletions_number_seq', 3, true);
SELECT pg_catalog.setval('ebrank.queries_number_seq', 3, true);
SELECT pg_catalog.setval('ebrank.writes', 1, true);
ALTER TABLE ONLY ebrank.catalog
    ADD CONSTRAINT catalog_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ebrank.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (query, turn);
ALTER TABLE ONLY ebrank.deletions
    ADD CONSTRAINT deletions_pkey PRIMARY KEY (number);
ALTER TABLE ONLY ebrank.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (query, ranking_id, place, type);
ALTER TABLE ONLY ebrank.events
    ADD CONSTRAINT events_query_event_id_key UNIQUE (query, event_id);
ALTER TABLE ONLY ebrank.evidence
    ADD CONSTRAINT evidence_pkey PRIMARY KEY (query, place, outcome, slot);
ALTER TABLE ONLY ebrank.items
    ADD CONSTRAINT items_pkey PRIMARY KEY (query, place);
ALTER TABLE ONLY ebrank.items
    ADD CONSTRAINT items_query_id_key UNIQUE (query, id);
ALTER TABLE ONLY ebrank.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY ebrank.minutes
    ADD CONSTRAINT minutes_pkey PRIMARY KEY (start, name);
ALTER TABLE ONLY ebrank.models
    ADD CONSTRAINT models_pkey PRIMARY KEY (version);
ALTER TABLE ONLY ebrank.queries
    ADD CONSTRAINT queries_name_key UNIQUE (name);
ALTER TABLE ONLY ebrank.queries
    ADD CONSTRAINT queries_pkey PRIMARY KEY (number);
ALTER TABLE ONLY ebrank.rankings
    ADD CONSTRAINT rankings_id_query_key UNIQUE (id, query);
ALTER TABLE ONLY ebrank.servers
    ADD CONSTRAINT servers_pkey PRIMARY KEY (name);
ALTER TABLE ONLY ebrank.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (query, place, outcome, slot);
ALTER TABLE ONLY ebrank.state
    ADD CONSTRAINT state_pkey PRIMARY KEY (one);
CREATE INDEX catalog_versions ON ebrank.catalog USING btree (version);
CREATE INDEX events_order ON ebrank.events USING btree (seq);
CREATE INDEX rankings_order ON ebrank.rankings USING btree (seq);
