-- Division that rounds down, and the clock's formula of core/clock.py with it.
CREATE MACRO floored(a, b) AS (a - ((a % b + b) % b)) // b;
CREATE MACRO drifted(span, drift) AS
  floored(span, 1000000000) * drift
  + floored((span - 1000000000 * floored(span, 1000000000)) * drift + 500000000, 1000000000);
CREATE MACRO aligned(t, c) AS t + c.shift + drifted(t - c.reference, c.drift);

-- The folder of a table has the export's name.
CREATE VIEW operators AS SELECT *, parse_path(filename)[-2] AS export FROM files_operators;
CREATE VIEW ranges AS SELECT *, parse_path(filename)[-2] AS export FROM files_ranges;
CREATE VIEW work AS
  SELECT *, parse_path(filename)[-2] AS export
  FROM (
    SELECT 'kernel' AS kind, * FROM files_launches
    UNION ALL BY NAME SELECT 'copy' AS kind, * FROM files_transfers
    UNION ALL BY NAME SELECT 'graph' AS kind, * FROM files_graphs
  );

CREATE VIEW on_the_line AS
  SELECT
    w.* EXCLUDE (start_ns, call_start_ns, call_end_ns),
    aligned(w.start_ns, c) AS start_ns,
    aligned(w.call_start_ns, c) AS call_start_ns,
    aligned(w.call_end_ns, c) AS call_end_ns,
    aligned(coalesce(w.call_start_ns, w.start_ns - w.queue_ns), c) AS called_ns
  FROM work w JOIN clocks c USING (export);

-- What was called before the recording began is in no step; what else has no known call counts by its start.
CREATE VIEW placed AS
  SELECT
    w.*,
    CASE
      WHEN since.called_since IS NULL THEN w.start_ns
      WHEN w.called_ns IS NOT NULL THEN w.called_ns
      WHEN w.start_ns >= since.called_since THEN w.start_ns
    END AS moment
  FROM on_the_line w LEFT JOIN since USING (rank);

CREATE VIEW windows AS
  SELECT
    rank, step, coalesce(called_ns, start_ns) AS begin_ns,
    coalesce(called_ns, start_ns) + coalesce(called_duration_ns, duration_ns) AS until_ns
  FROM files_steps;

SELECT
  w.kind, w.export, w.rank, w.device, w.stream, w.start_ns, w.duration_ns,
  k.kernel, k.name, k.short_name, k.class, k.configuration,
  w.bytes, w.copy_kind, w.src_kind, w.dst_kind,
  w.call, w.call_start_ns, w.call_end_ns, w.queue_ns, w.thread, w.correlation,
  o.name AS operator, o.outermost, o.module, o.phase, r.name AS range,
  CASE WHEN w.moment < s.until_ns THEN s.step END AS step
FROM placed w
LEFT JOIN kernels k ON k.export = w.export AND k.own = w.configuration
LEFT JOIN operators o ON o.export = w.export AND o.operator = w.operator
LEFT JOIN ranges r ON r.export = w.export AND r.range = w.range
ASOF LEFT JOIN windows s ON s.rank = w.rank AND s.begin_ns <= w.moment
ORDER BY w.rank, w.start_ns, w.device, w.stream, w.kind, w.export
