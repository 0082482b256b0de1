SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
CREATE SCHEMA ebrank;
CREATE TABLE ebrank.arm_sums (
    experiment text NOT NULL COLLATE pg_catalog."C",
    stretch integer NOT NULL,
    arm text NOT NULL COLLATE pg_catalog."C",
    cell integer NOT NULL,
    lists bigint NOT NULL,
    clicks bigint NOT NULL,
    outcome double precision NOT NULL,
    found bigint NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE ebrank.catalog (
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    numbers bytea
);
CREATE UNLOGGED TABLE ebrank.changes (
    query bigint NOT NULL,
    turn smallint NOT NULL,
    version bigint NOT NULL,
    news text NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE ebrank.deletions (
    number bigint NOT NULL,
    "time" double precision NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL COLLATE pg_catalog."C",
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
    seq bigint NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    ranking_id text NOT NULL COLLATE pg_catalog."C",
    query bigint NOT NULL,
    place integer NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    rank integer NOT NULL,
    outcome smallint NOT NULL,
    shows boolean NOT NULL,
    "time" double precision NOT NULL,
    received double precision NOT NULL,
    replaces smallint NOT NULL,
    retracted boolean NOT NULL,
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
CREATE TABLE ebrank.features (
    query bigint NOT NULL,
    place integer NOT NULL,
    numbers bytea NOT NULL
);
CREATE TABLE ebrank.items (
    query bigint NOT NULL,
    place integer NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    entered double precision NOT NULL,
    active boolean NOT NULL,
    first_shown double precision
)
WITH (fillfactor='80');
CREATE TABLE ebrank.meta (
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE ebrank.minutes (
    start double precision NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    value double precision NOT NULL
);
CREATE TABLE ebrank.models (
    version integer NOT NULL,
    created double precision NOT NULL,
    rows bigint NOT NULL,
    validation_loss double precision,
    previous_loss double precision,
    activated boolean NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    features text NOT NULL,
    document bytea NOT NULL,
    arms text COLLATE pg_catalog."C"
);
CREATE TABLE ebrank.queries (
    number bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    size integer NOT NULL,
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
CREATE TABLE ebrank.rankings (
    seq bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    query bigint NOT NULL,
    "time" double precision NOT NULL,
    model integer NOT NULL,
    items text NOT NULL,
    counted boolean NOT NULL,
    explored bytea NOT NULL,
    relevance bytea NOT NULL,
    cost double precision NOT NULL,
    "user" text COLLATE pg_catalog."C",
    "offset" integer NOT NULL,
    continues text COLLATE pg_catalog."C",
    seen text,
    retracted boolean NOT NULL,
    epoch integer NOT NULL,
    arm text COLLATE pg_catalog."C",
    token text COLLATE pg_catalog."C"
);
CREATE UNLOGGED TABLE ebrank.servers (
    name text NOT NULL,
    seen timestamp with time zone NOT NULL,
    about text NOT NULL
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
    rolled_up bigint NOT NULL,
    catalog bigint NOT NULL,
    lives bigint NOT NULL,
    schema_version integer DEFAULT 5 NOT NULL,
    CONSTRAINT state_one_check CHECK ((one = 1))
);
CREATE TABLE ebrank.unfinished (
    proof bigint NOT NULL,
    query bigint,
    "user" text COLLATE pg_catalog."C"
);
CREATE SEQUENCE ebrank.writes
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
INSERT INTO ebrank.catalog VALUES ('i0', 1, '\x00000000');
INSERT INTO ebrank.catalog VALUES ('i1', 1, '\x0000003e');
INSERT INTO ebrank.catalog VALUES ('i2', 1, '\x0000803e');
INSERT INTO ebrank.catalog VALUES ('i4', 1, '\x0000003f');
INSERT INTO ebrank.catalog VALUES ('i5', 1, '\x0000203f');
INSERT INTO ebrank.catalog VALUES ('i6', 1, '\x0000403f');
INSERT INTO ebrank.catalog VALUES ('i7', 1, '\x0000603f');
INSERT INTO ebrank.changes VALUES (1, 2, 2, '[[[4,0,4,2],[5,0,5,1],[4,1,4,1],[5,2,5,1],[0,0,0,1],[5,0,1,1],[2,0,2,2],[4,0,3,2],[0,1,0,1],[5,2,1,1],[5,0,0,1],[0,0,1,1],[5,1,0,1],[1,0,5,1]],[[4,1700057600.0],[5,1700057600.0],[0,1700086400.0],[2,1700086400.0],[1,1700144000.0]]]');
INSERT INTO ebrank.changes VALUES (2, 2, 2, '[[[2,0,0,1],[4,0,1,1],[3,0,2,2],[5,0,3,2],[2,1,0,1],[4,2,1,1],[4,0,0,2],[2,0,1,2],[4,1,0,2],[2,2,1,1],[0,0,4,1],[5,0,5,1],[0,1,4,1],[5,2,5,1],[5,0,2,1],[0,0,3,1]],[[2,1700064800.0],[4,1700064800.0],[3,1700064800.0],[5,1700064800.0],[0,1700122400.0]]]');
INSERT INTO ebrank.changes VALUES (3, 2, 2, '[[[4,0,0,2],[1,0,1,1],[3,0,2,1],[2,0,3,1],[5,0,4,1],[3,0,5,1],[5,1,4,1],[3,2,5,1],[3,0,0,1],[4,0,1,1],[5,0,2,2],[1,0,3,1],[3,1,0,1],[4,2,1,1],[3,0,1,1],[0,0,3,1],[4,1,0,1],[3,2,1,1]],[[4,1700072000.0],[1,1700072000.0],[3,1700072000.0],[2,1700072000.0],[5,1700100800.0],[0,1700158400.0]]]');
INSERT INTO ebrank.deletions OVERRIDING SYSTEM VALUE VALUES (1, 1700172800, 'query', 'cf9ef33ec8c5b1dc', 1, 4, 6);
INSERT INTO ebrank.deletions OVERRIDING SYSTEM VALUE VALUES (2, 1700172800, 'item', 'c3240847f242e734', 3, 0, 0);
INSERT INTO ebrank.deletions OVERRIDING SYSTEM VALUE VALUES (3, 1700172800, 'user', 'f423b10e411edd8b', 0, 3, 0);
INSERT INTO ebrank.events VALUES (1048577, '8-click', '60a3181588000-15f7e02ce2143c88', 1, 4, 'click', 5, 1, false, 1700057600, 1700057600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048578, '8-purchase', '60a3181588000-15f7e02ce2143c88', 1, 5, 'purchase', 6, 2, false, 1700057600, 1700057600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048580, '9-click', '60a332e7fc800-4f5e3fc7186712e0', 2, 2, 'click', 1, 1, false, 1700064800, 1700064800, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048581, '9-purchase', '60a332e7fc800-4f5e3fc7186712e0', 2, 4, 'purchase', 2, 2, false, 1700064800, 1700064800, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048582, '9-hide', '60a332e7fc800-4f5e3fc7186712e0', 2, 3, 'hide', 3, -1, false, 1700064800, 1700064800, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048585, '12-click', '60a3835f5a000-8db2098b33b48b96', 1, 0, 'click', 1, 1, false, 1700086400, 1700086400, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048586, '12-purchase', '60a3835f5a000-8db2098b33b48b96', 1, 5, 'purchase', 2, 2, false, 1700086400, 1700086400, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048588, '13-click', '60a39e31ce800-5ee001d23403e4cb', 2, 4, 'click', 1, 1, false, 1700093600, 1700093600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048589, '13-purchase', '60a39e31ce800-5ee001d23403e4cb', 2, 2, 'purchase', 2, 2, false, 1700093600, 1700093600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048590, '13-hide', '60a39e31ce800-5ee001d23403e4cb', 2, 3, 'hide', 3, -1, false, 1700093600, 1700093600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048592, '14-click', '60a3b90443000-0e27abcb7b9610e7', 3, 5, 'click', 5, 1, false, 1700100800, 1700100800, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048593, '14-purchase', '60a3b90443000-0e27abcb7b9610e7', 3, 3, 'purchase', 6, 2, false, 1700100800, 1700100800, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048595, '16-click', '60a3eea92c000-f3fed20a6b647e26', 1, 5, 'click', 1, 1, false, 1700115200, 1700115200, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048597, '17-click', '60a4097ba0800-d7936c1286781ba0', 2, 0, 'click', 5, 1, false, 1700122400, 1700122400, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048598, '17-purchase', '60a4097ba0800-d7936c1286781ba0', 2, 5, 'purchase', 6, 2, false, 1700122400, 1700122400, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048600, '18-click', '60a4244e15000-239c985e77b6c012', 3, 3, 'click', 1, 1, false, 1700129600, 1700129600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048601, '18-purchase', '60a4244e15000-239c985e77b6c012', 3, 4, 'purchase', 2, 2, false, 1700129600, 1700129600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048602, '18-hide', '60a4244e15000-239c985e77b6c012', 3, 5, 'hide', 3, -1, false, 1700129600, 1700129600, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048605, '21-click', '60a474c572800-0bc8c1f7c823ab9e', 2, 4, 'click', 1, 1, false, 1700151200, 1700151200, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048607, '22-click', '60a48f97e7000-f8022494b30d446e', 3, 4, 'click', 1, 1, false, 1700158400, 1700158400, 0, false, NULL, 0);
INSERT INTO ebrank.events VALUES (1048608, '22-purchase', '60a48f97e7000-f8022494b30d446e', 3, 3, 'purchase', 2, 2, false, 1700158400, 1700158400, 0, false, NULL, 0);
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
INSERT INTO ebrank.evidence VALUES (1, 4, 1, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 2, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 0, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 3, 0, 2, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 0, 3, 3, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 1, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 0, 0, 3, 0);
INSERT INTO ebrank.evidence VALUES (3, 1, 0, 1, 2, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 2, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 2, 0, 3, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 0, 0, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 2, 0, 2, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 4, 0, 3, 3, 0);
INSERT INTO ebrank.evidence VALUES (1, 0, 1, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 0, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 0, 1, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 4, 1, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (2, 2, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 5, 0, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 5, 1, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 2, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 0, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 0, 0, 1, 2, 0);
INSERT INTO ebrank.evidence VALUES (1, 5, 1, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 0, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 1, 4, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 2, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 5, 0, 2, 3, 0);
INSERT INTO ebrank.evidence VALUES (3, 1, 0, 3, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 1, 0, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 2, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (1, 1, 0, 5, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 5, 0, 2, 1, 0);
INSERT INTO ebrank.evidence VALUES (2, 0, 0, 3, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 0, 1, 1, 0);
INSERT INTO ebrank.evidence VALUES (3, 0, 0, 3, 2, 0);
INSERT INTO ebrank.evidence VALUES (3, 4, 1, 0, 2, 0);
INSERT INTO ebrank.evidence VALUES (3, 3, 2, 1, 1, 0);
INSERT INTO ebrank.features VALUES (1, 0, '\xec0f233f7c218a3e');
INSERT INTO ebrank.features VALUES (1, 1, '\xdbd3273df764873c');
INSERT INTO ebrank.features VALUES (1, 2, '\x7a32503f59aa693f');
INSERT INTO ebrank.features VALUES (1, 3, '\x0000c07f0000c07f');
INSERT INTO ebrank.features VALUES (1, 4, '\x022b0b3fe8606f3f');
INSERT INTO ebrank.features VALUES (1, 5, '\xc7db503f6978333b');
INSERT INTO ebrank.features VALUES (2, 0, '\xec0f233f7c218a3e');
INSERT INTO ebrank.features VALUES (2, 1, '\xdbd3273df764873c');
INSERT INTO ebrank.features VALUES (2, 2, '\x7a32503f59aa693f');
INSERT INTO ebrank.features VALUES (2, 3, '\x0000c07f0000c07f');
INSERT INTO ebrank.features VALUES (2, 4, '\x022b0b3fe8606f3f');
INSERT INTO ebrank.features VALUES (2, 5, '\xc7db503f6978333b');
INSERT INTO ebrank.features VALUES (3, 0, '\xec0f233f7c218a3e');
INSERT INTO ebrank.features VALUES (3, 1, '\xdbd3273df764873c');
INSERT INTO ebrank.features VALUES (3, 2, '\x7a32503f59aa693f');
INSERT INTO ebrank.features VALUES (3, 3, '\x0000c07f0000c07f');
INSERT INTO ebrank.features VALUES (3, 4, '\x022b0b3fe8606f3f');
INSERT INTO ebrank.features VALUES (3, 5, '\xc7db503f6978333b');
INSERT INTO ebrank.items VALUES (1, 0, 'i0', 1700000000, true, 1700028800);
INSERT INTO ebrank.items VALUES (1, 1, 'i1', 1700000000, true, 1700000000);
INSERT INTO ebrank.items VALUES (1, 2, 'i2', 1700000000, true, 1700028800);
INSERT INTO ebrank.items VALUES (1, 3, 'ebrank:deleted:e17dce7c4eb918e9', 1700000000, false, 1700000000);
INSERT INTO ebrank.items VALUES (1, 4, 'i4', 1700000000, true, 1700000000);
INSERT INTO ebrank.items VALUES (1, 5, 'i5', 1700000000, true, 1700000000);
INSERT INTO ebrank.items VALUES (2, 0, 'i0', 1700000000, true, 1700007200);
INSERT INTO ebrank.items VALUES (2, 1, 'i1', 1700000000, true, 1700007200);
INSERT INTO ebrank.items VALUES (2, 2, 'i2', 1700000000, true, 1700007200);
INSERT INTO ebrank.items VALUES (2, 5, 'i5', 1700000000, false, 1700007200);
INSERT INTO ebrank.items VALUES (3, 0, 'i0', 1700000000, true, 1700043200);
INSERT INTO ebrank.items VALUES (3, 1, 'i1', 1700000000, true, 1700014400);
INSERT INTO ebrank.items VALUES (3, 4, 'i4', 1700000000, true, 1700014400);
INSERT INTO ebrank.items VALUES (3, 5, 'i5', 1700000000, true, 1700043200);
INSERT INTO ebrank.items VALUES (2, 4, 'i4', 1700000000, true, 1700064800);
INSERT INTO ebrank.items VALUES (2, 3, 'ebrank:deleted:e17dce7c4eb918e9', 1700000000, false, 1700064800);
INSERT INTO ebrank.items VALUES (3, 3, 'ebrank:deleted:e17dce7c4eb918e9', 1700000000, false, 1700072000);
INSERT INTO ebrank.items VALUES (3, 2, 'i2', 1700000000, true, 1700072000);
INSERT INTO ebrank.meta VALUES ('behaviors', '["click", "purchase"]');
INSERT INTO ebrank.meta VALUES ('features', '{"features":[["p0",null],["p1",null],["s0","price"]],"removed":[]}');
INSERT INTO ebrank.meta VALUES ('first_item', '1700000000.0');
INSERT INTO ebrank.meta VALUES ('learned_from', '1 ');
INSERT INTO ebrank.meta VALUES ('query_names', 'normalized');
INSERT INTO ebrank.meta VALUES ('refused_since', '');
INSERT INTO ebrank.meta VALUES ('salt', '8846510b2b38785fd760ecd4253f4d98');
INSERT INTO ebrank.meta VALUES ('totals', '{"items": 24, "queries": 4, "rankings": 24, "events": 39, "clicks": 33}');
INSERT INTO ebrank.minutes VALUES (1699999980, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1699999980, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1699999980, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1699999980, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1699999980, 'ms55', 1);
INSERT INTO ebrank.minutes VALUES (1699999980, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1699999980, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700007180, 'clicks_new', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, 'events', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700007180, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700007180, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700007180, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700007180, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700007180, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700014380, 'clicks_new', 2);
INSERT INTO ebrank.minutes VALUES (1700014380, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700014380, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700014380, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700014380, 'exposure_new', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700014380, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700014380, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700014380, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700014380, 'shown', 2);
INSERT INTO ebrank.minutes VALUES (1700021580, 'clicks_new', 2);
INSERT INTO ebrank.minutes VALUES (1700021580, 'events', 3);
INSERT INTO ebrank.minutes VALUES (1700021580, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700021580, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700021580, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700021580, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700021580, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700021580, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700021580, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700028780, 'clicks_new', 2);
INSERT INTO ebrank.minutes VALUES (1700028780, 'events', 3);
INSERT INTO ebrank.minutes VALUES (1700028780, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700028780, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700028780, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700028780, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700028780, 'ms16', 1);
INSERT INTO ebrank.minutes VALUES (1700028780, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700028780, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700035980, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700035980, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700035980, 'exposure_new', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700035980, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700035980, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700035980, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700035980, 'shown', 2);
INSERT INTO ebrank.minutes VALUES (1700043180, 'clicks_new', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, 'events', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700043180, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700043180, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700043180, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700043180, 'ms23', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700043180, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700050380, 'clicks_new', 2);
INSERT INTO ebrank.minutes VALUES (1700050380, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700050380, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700050380, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700050380, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700050380, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700050380, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700050380, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700050380, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700057580, 'clicks_new', 2);
INSERT INTO ebrank.minutes VALUES (1700057580, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700057580, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700057580, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700057580, 'exposure_new', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700057580, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700057580, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700057580, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700057580, 'shown', 2);
INSERT INTO ebrank.minutes VALUES (1700064780, 'clicks_new', 2);
INSERT INTO ebrank.minutes VALUES (1700064780, 'events', 3);
INSERT INTO ebrank.minutes VALUES (1700064780, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700064780, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700064780, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700064780, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700064780, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700064780, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700064780, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700071980, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700071980, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700071980, 'exposure_new', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700071980, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700071980, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700071980, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700071980, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700079180, 'clicks_new', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, 'events', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700079180, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700079180, 'exposure_new', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700079180, 'exposure_old', 0);
INSERT INTO ebrank.minutes VALUES (1700079180, 'ms10', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700079180, 'shown', 2);
INSERT INTO ebrank.minutes VALUES (1700086380, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700086380, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700086380, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700086380, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700086380, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700086380, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700086380, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700086380, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700086380, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700093580, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700093580, 'events', 3);
INSERT INTO ebrank.minutes VALUES (1700093580, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700093580, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700093580, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700093580, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700093580, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700093580, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700093580, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700100780, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700100780, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700100780, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700100780, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700100780, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700100780, 'exposure_old', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700100780, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700100780, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700100780, 'shown', 2);
INSERT INTO ebrank.minutes VALUES (1700107980, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700107980, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700107980, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700107980, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700107980, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700107980, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700107980, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700115180, 'clicks_old', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, 'events', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700115180, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700115180, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700115180, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700115180, 'ms11', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700115180, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700122380, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700122380, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700122380, 'exploration_cost', -1.0464959033734998e-05);
INSERT INTO ebrank.minutes VALUES (1700122380, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700122380, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700122380, 'exposure_old', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700122380, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700122380, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700122380, 'shown', 2);
INSERT INTO ebrank.minutes VALUES (1700129580, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700129580, 'events', 3);
INSERT INTO ebrank.minutes VALUES (1700129580, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700129580, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700129580, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700129580, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700129580, 'ms15', 1);
INSERT INTO ebrank.minutes VALUES (1700129580, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700129580, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700136780, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700136780, 'events', 3);
INSERT INTO ebrank.minutes VALUES (1700136780, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700136780, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700136780, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700136780, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700136780, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700136780, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700136780, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700143980, 'exploration_cost', -0.003341965711573665);
INSERT INTO ebrank.minutes VALUES (1700143980, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700143980, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700143980, 'exposure_old', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700143980, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700143980, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700143980, 'shown', 2);
INSERT INTO ebrank.minutes VALUES (1700151180, 'clicks_old', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, 'events', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, 'exploration_cost', 0.0005118489075186667);
INSERT INTO ebrank.minutes VALUES (1700151180, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700151180, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700151180, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700151180, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700151180, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700158380, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700158380, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700158380, 'exploration_cost', 0.0019004374214830154);
INSERT INTO ebrank.minutes VALUES (1700158380, 'explored', 1);
INSERT INTO ebrank.minutes VALUES (1700158380, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700158380, 'exposure_old', 2.5616063116448506);
INSERT INTO ebrank.minutes VALUES (1700158380, 'ms13', 1);
INSERT INTO ebrank.minutes VALUES (1700158380, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700158380, 'shown', 4);
INSERT INTO ebrank.minutes VALUES (1700165580, 'clicks_old', 2);
INSERT INTO ebrank.minutes VALUES (1700165580, 'events', 2);
INSERT INTO ebrank.minutes VALUES (1700165580, 'exploration_cost', 0);
INSERT INTO ebrank.minutes VALUES (1700165580, 'explored', 0);
INSERT INTO ebrank.minutes VALUES (1700165580, 'exposure_new', 0);
INSERT INTO ebrank.minutes VALUES (1700165580, 'exposure_old', 0.7430599943425638);
INSERT INTO ebrank.minutes VALUES (1700165580, 'ms14', 1);
INSERT INTO ebrank.minutes VALUES (1700165580, 'rankings', 1);
INSERT INTO ebrank.minutes VALUES (1700165580, 'shown', 2);
INSERT INTO ebrank.models VALUES (1, 1700165600, 9, 0.1, 0.2, true, 'it is better', '[]', '\x7b0a2022666f726d6174223a2022656272616e6b2d6d6f64656c222c0a202276657273696f6e223a20332c0a2022706f6c696379223a2022656272616e6b222c0a20226578616d696e6174696f6e223a207b0a2020227365766572697479223a20312e302c0a2020226375746f6666223a206e756c6c2c0a2020226375727665223a206e756c6c0a207d2c0a20227363616c696e67223a206e756c6c2c0a202273656564223a20302c0a20227374617465223a207b0a20202277656967687473223a207b0a202020227368617065223a205b0a20202020310a2020205d2c0a2020202276616c756573223a205b0a20202020312e300a2020205d0a20207d2c0a202022696e74657263657074223a207b0a202020227368617065223a205b0a20202020310a2020205d2c0a2020202276616c756573223a205b0a20202020302e300a2020205d0a20207d2c0a2020227269646765223a207b0a202020227368617065223a205b0a20202020310a2020205d2c0a2020202276616c756573223a205b0a20202020302e3030310a2020205d0a20207d0a207d0a7d', NULL);
INSERT INTO ebrank.queries OVERRIDING SYSTEM VALUE VALUES (1, 'tea', 2, 6, 1700172800);
INSERT INTO ebrank.queries OVERRIDING SYSTEM VALUE VALUES (2, 'coffee', 2, 6, 1700172800);
INSERT INTO ebrank.queries OVERRIDING SYSTEM VALUE VALUES (3, 'grüner tee 🍵', 2, 6, 1700172800);
INSERT INTO ebrank.rankings VALUES (1048576, '60a3181588000-15f7e02ce2143c88', 1, 1700057600, 0, '[4,5]', true, '\x0000', '\x4ea7bcf31911c33f8ccfb69d5676c23f', 0, '84b3790d2cbbd22c', 4, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048579, '60a332e7fc800-4f5e3fc7186712e0', 2, 1700064800, 0, '[2,4,3,5]', true, '\x00000000', '\x6c73e88176d1c73f1fc6faac4581c53f1fc6faac4581c53f34be1af06454c43f', 0, '742662b81922516c', 0, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048583, '60a34dba71000-8bce6740df639b44', 3, 1700072000, 0, '[4,1,3,2]', true, '\x00000000', '\xecdf6bc47166d23f0a49296863a0c73f1fc6faac4581c53f1fc6faac4581c53f', 0, 'e7a61376353df078', 0, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048584, '60a3835f5a000-8db2098b33b48b96', 1, 1700086400, 0, '[0,5,2,4]', true, '\x00000000', '\x84185ff25149d23f041d57a63700d03f6c73e88176d1c73ff542780dd8e8c63f', 0, NULL, 0, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048587, '60a39e31ce800-5ee001d23403e4cb', 2, 1700093600, 0, '[4,2,3,5]', true, '\x00000000', '\x84185ff25149d23fc21ae9e9cc9cc93f42a5ddb6851fc43f1b78eb513741c33f', 0, '84b3790d2cbbd22c', 0, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048591, '60a3b90443000-0e27abcb7b9610e7', 3, 1700100800, 0, '[5,3]', true, '\x0000', '\x42a5ddb6851fc43f42a5ddb6851fc43f', 0, '742662b81922516c', 4, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048594, '60a3eea92c000-f3fed20a6b647e26', 1, 1700115200, 0, '[5,0,2,4]', true, '\x00000000', '\x000e64a15555d53fecdf6bc47166d23f3f54f90e887cc63f69fff0fa6ed3c53f', 0, 'f3758e9467949ae3', 0, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048596, '60a4097ba0800-d7936c1286781ba0', 2, 1700122400, 0, '[0,5]', true, '\x0000', '\x3aa16f0cbfe2c23f183e4bb24c45c23f', -1.0464959033734998e-05, NULL, 4, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048599, '60a4244e15000-239c985e77b6c012', 3, 1700129600, 0, '[3,4,5,1]', true, '\x00000000', '\x7f74848a8755d13f7acbfadd135bd03f5283dffc1e15c83f9ffa95a710e5c53f', 0, '84b3790d2cbbd22c', 0, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048603, '60a459f2fe000-7681e642bb6ab2bf', 1, 1700144000, 0, '[4,1]', true, '\x0000', '\x35a230f3fbd2c43f4ea7bcf31911c33f', -0.003341965711573665, 'e7a61376353df078', 4, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048604, '60a474c572800-0bc8c1f7c823ab9e', 2, 1700151200, 0, '[4,2,5,0]', true, '\x00000000', '\xecdf6bc47166d23fba4e6eae2a7dd23f482c03034905d03f3f57c825afb3c63f', 0.0005118489075186667, 'f3758e9467949ae3', 0, NULL, NULL, false, 0, NULL, NULL);
INSERT INTO ebrank.rankings VALUES (1048606, '60a48f97e7000-f8022494b30d446e', 3, 1700158400, 0, '[4,3,5,0]', true, '\x00000001', '\x01c66a65b81ed53fcfd5cb98b18cd13fed56cdb97db3c63f34be1af06454c43f', 0.0019004374214830154, NULL, 0, NULL, NULL, false, 0, NULL, NULL);
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
INSERT INTO ebrank.state VALUES (1, 1, 1700172800, 0, 1, 0, 5);
SELECT pg_catalog.setval('ebrank.deletions_number_seq', 3, true);
SELECT pg_catalog.setval('ebrank.queries_number_seq', 3, true);
SELECT pg_catalog.setval('ebrank.writes', 1, true);
ALTER TABLE ONLY ebrank.arm_sums
    ADD CONSTRAINT arm_sums_pkey PRIMARY KEY (experiment, stretch, arm, cell);
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
ALTER TABLE ONLY ebrank.features
    ADD CONSTRAINT features_pkey PRIMARY KEY (query, place);
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
ALTER TABLE ONLY ebrank.unfinished
    ADD CONSTRAINT unfinished_pkey PRIMARY KEY (proof);
CREATE INDEX catalog_versions ON ebrank.catalog USING btree (version);
CREATE INDEX events_order ON ebrank.events USING btree (seq);
CREATE INDEX rankings_order ON ebrank.rankings USING btree (seq);
