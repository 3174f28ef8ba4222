-- Story C: a job for each write pattern, and their targets, empty.

TRUNCATE payouts, payouts_append, payouts_merge, payouts_by_clock;

SELECT create_job('append', command => $$
	INSERT INTO payouts_append
	SELECT * FROM owed_fixed WHERE sale_date = $1
$$);

SELECT create_job('skip if present', command => $$
	INSERT INTO payouts_append
	SELECT * FROM owed_fixed WHERE sale_date = $1
	AND NOT EXISTS (SELECT FROM payouts_append WHERE sale_date = $1)
$$);

SELECT create_job('merge on sale_id', command => $$
	INSERT INTO payouts_merge
	SELECT * FROM owed_fixed WHERE sale_date = $1
	ON CONFLICT (sale_id) DO UPDATE SET amount_eur = EXCLUDED.amount_eur
$$);

SELECT create_job('replace_partition', 'payouts', $$
	SELECT * FROM owed_fixed WHERE sale_date = $1
$$);
