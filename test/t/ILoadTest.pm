# ILoadTest.pm - what the TAP tests share: nodes with the extension, sessions in
# the background, gates at wait points, and comparison with an oracle.
#
# Only what PostgreSQL::Test::Cluster has in all supported versions is used.
# Its background_psql differs from version to version, so here is one.

package ILoadTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(new_node session close_gate wait_at_gate wait_for_lock
  error_of make_rows_function make_table state_of expect_rows relation_names temp_files private_mb
  add_checkers storage_faults expect_sound expect_frozen);

# A started node with the extension in database postgres.  Options: conf is text
# for postgresql.conf, init are parameters of init.
sub new_node
{
	my ($name, %option) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $option{init} || {} });
	$node->append_conf('postgresql.conf', <<CONF);
autovacuum = off
max_connections = 30
log_statement = none
jit = off
@{[ $option{conf} || '' ]}
CONF
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION idempotent_load');
	return $node;
}

# A psql in the background; see ILoadTest::Session.
sub session
{
	return ILoadTest::Session->new(@_);
}

# Hold the advisory lock of a wait point.  Returns the session that does;
# finish() opens the gate.
sub close_gate
{
	my ($node, $point) = @_;
	my $gate = session($node);

	$gate->query("SELECT pg_advisory_lock(hashtext('idempotent_load'), hashtext('$point'))");
	return $gate;
}

# Wait until so many loads stand at a gate.
sub wait_at_gate
{
	my ($node, $count) = @_;

	$node->poll_query_until('postgres', <<SQL, $count) or die "no load came to the gate";
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND NOT granted
SQL
	return;
}

# Wait until a backend waits for a heavyweight lock.
sub wait_for_lock
{
	my ($node, $pid) = @_;

	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_locks WHERE pid = $pid AND NOT granted")
	  or die "backend $pid does not wait for a lock";
	return;
}

# Run SQL that should fail; returns "SQLSTATE: message", or '' if it did not.
sub error_of
{
	my ($node, $sql, $dbname) = @_;
	my ($rc, $out, $err) = $node->psql($dbname || 'postgres',
		"\\set VERBOSITY verbose\n$sql", on_error_stop => 1);

	return $rc != 0 && $err =~ /(?:ERROR|FATAL):  (.*)/ ? $1 : '';
}

# rows_of(day, version): the rows of one day in one version of the source.
# Version by version, every third row changes, rows come and go at both ends,
# some come twice, and each seventh row has a value that is stored out of line.
sub make_rows_function
{
	my ($node, $dbname) = @_;

	$node->safe_psql($dbname || 'postgres', <<'SQL');
CREATE FUNCTION rows_of(day date, version int)
RETURNS TABLE (day date, id int, amount numeric, note text)
LANGUAGE sql STABLE AS
$$
SELECT $1, g, round((g * 37 % 900 + CASE WHEN g % 3 = 0 THEN $2 ELSE 0 END) * 0.5, 2),
	CASE WHEN g % 7 = 0 THEN
		(SELECT string_agg(md5($1::text || g || i), '') FROM generate_series(1, 100) i)
	WHEN g % 5 > 0 THEN 'note ' || g END
FROM generate_series(1 + $2, 400 + 2 * $2) g,
	generate_series(1, CASE WHEN g % 50 = 0 THEN 2 ELSE 1 END)
$$;
SQL
	return;
}

# Everything in some tables, day by day, and how far the history has come.
sub state_of
{
	my ($node, @tables) = @_;
	my @queries = map { <<SQL } @tables;
SELECT '$_', day, count(*), sum(amount), md5(string_agg(t::text, '' ORDER BY t::text)), fingerprint(t)
FROM $_ t GROUP BY day
SQL

	push @queries,
	  "SELECT 'history', NULL, count(*), coalesce(max(id), 0), NULL, NULL FROM load_history";
	return $node->safe_psql('postgres', join(' UNION ALL ', @queries) . ' ORDER BY 1, 2');
}

# Make a table of the columns of rows_of, with three days in version 0; one
# whose name begins with part has a partition for each.
sub make_table
{
	my ($node, $table) = @_;
	my $partitioned = $table =~ /^part/;
	my $sql = "CREATE TABLE $table"
	  . ' (day date NOT NULL, id int NOT NULL, amount numeric(12,2), note text)'
	  . ($partitioned ? ' PARTITION BY RANGE (day);' : ';')
	  . "CREATE INDEX ON $table (id);";

	foreach my $d (1 .. 3)
	{
		$sql .= sprintf(
			"CREATE TABLE %1\$s_2026080%2\$d PARTITION OF %1\$s"
			  . " FOR VALUES FROM ('2026-08-0%2\$d') TO ('2026-08-0%3\$d');",
			$table, $d, $d + 1) if $partitioned;
		$sql .= "INSERT INTO $table SELECT * FROM rows_of('2026-08-0$d', 0);";
	}
	$node->safe_psql('postgres', $sql);
	return;
}

# Two queries give the same multiset of rows.
sub expect_rows
{
	my ($node, $got, $expected, $name, $dbname) = @_;
	my $difference = $node->safe_psql($dbname || 'postgres', <<SQL);
SELECT 'unexpected', d.* FROM (($got) EXCEPT ALL ($expected)) d
UNION ALL
SELECT 'missing', d.* FROM (($expected) EXCEPT ALL ($got)) d
LIMIT 5
SQL

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(substr($difference, 0, 500), '', $name);
}

# All relations there are, to see whether one was left behind.
sub relation_names
{
	my ($node) = @_;

	return $node->safe_psql('postgres', <<'SQL');
SELECT relkind, relnamespace::regnamespace, relname FROM pg_class
WHERE relnamespace <> 'pg_toast'::regnamespace ORDER BY 2, 3
SQL
}

# Temporary files of the default tablespace.
sub temp_files
{
	my ($node) = @_;

	return map { glob "$_/*" } glob $node->data_dir . '/base/pgsql_tmp';
}

# Peak of a backend's own memory in MB; 003_memory.pl tells how.
sub private_mb
{
	my ($pid) = @_;
	my $status = slurp_file("/proc/$pid/status");
	my %kb = $status =~ /^(VmHWM|RssFile|RssShmem):\s+(\d+) kB$/mg;

	return ($kb{VmHWM} - $kb{RssFile} - $kb{RssShmem}) / 1024;
}

# What storage_faults and expect_frozen need.  False where the server does not
# have them.
sub add_checkers
{
	my ($node, $dbname) = @_;

	return 0 if $node->safe_psql('postgres', <<'SQL') < 2;
SELECT count(*) FROM pg_available_extensions WHERE name IN ('amcheck', 'pg_visibility')
SQL
	$node->safe_psql($dbname || 'postgres',
		'CREATE EXTENSION IF NOT EXISTS amcheck; CREATE EXTENSION IF NOT EXISTS pg_visibility');
	return 1;
}

# Whatever is wrong with the storage of a database, as the server's own checkers
# and its catalogs tell: heaps, TOAST, btrees, visibility maps, freezing limits,
# names and dependencies, files.  Option crashed: a crash leaves files of
# transactions that had not ended, as the server does not remove them; files are
# then not looked for.
sub storage_faults
{
	my ($node, $dbname, %option) = @_;
	my $standby = $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	my $index_check = $standby ? 'bt_index_check' : 'bt_index_parent_check';

	# unlogged relations cannot be read on a standby
	my $readable = $standby ? "c.relpersistence = 'p'" : "c.relpersistence <> 't'";
	my $sql = <<SQL;
SELECT 'heap', c.oid::regclass::text, h.blkno || ' ' || h.msg
FROM pg_class c, LATERAL verify_heapam(c.oid) h
WHERE c.relkind IN ('r', 'm', 't') AND $readable
UNION ALL
SELECT 'index', c.oid::regclass::text, 'is not valid'
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE NOT (indisvalid AND indisready AND indislive)
UNION ALL
SELECT 'index', c.oid::regclass::text, 'has another persistence than its table'
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid
WHERE c.relpersistence <> t.relpersistence
UNION ALL
SELECT 'not visible', c.oid::regclass::text, f.t_ctid::text
FROM pg_class c, LATERAL pg_check_visible(c.oid) f
WHERE c.relkind IN ('r', 'm', 't') AND c.oid >= 16384 AND $readable
UNION ALL
SELECT 'not frozen', c.oid::regclass::text, f.t_ctid::text
FROM pg_class c, LATERAL pg_check_frozen(c.oid) f
WHERE c.relkind IN ('r', 'm', 't') AND c.oid >= 16384 AND $readable
UNION ALL
SELECT 'freezing limit', c.oid::regclass::text, c.relfrozenxid || ' ' || c.relminmxid
FROM pg_class c
WHERE c.relkind IN ('r', 'm', 't') AND NOT (c.relfrozenxid::text::bigint >= 3 AND
	age(c.relfrozenxid) BETWEEN 0 AND 1000000000 AND
	c.relminmxid::text::bigint >= 1 AND mxid_age(c.relminmxid) BETWEEN 0 AND 1000000000)
UNION ALL
SELECT 'left over', c.oid::regclass::text, '' FROM pg_class c WHERE c.relname LIKE 'pg/_temp/_%' ESCAPE '/'
UNION ALL
SELECT 'left over', t.oid::regtype::text, '' FROM pg_type t WHERE ltrim(t.typname, '_') LIKE 'pg/_temp/_%' ESCAPE '/'
UNION ALL
SELECT 'name of TOAST', c.oid::regclass::text, t.relname
FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
WHERE c.oid >= 16384 AND t.relname <> 'pg_toast_' || c.oid
UNION ALL
SELECT 'name of TOAST index', c.oid::regclass::text, x.oid::regclass::text
FROM pg_class c JOIN pg_index i ON i.indrelid = c.reltoastrelid JOIN pg_class x ON x.oid = i.indexrelid
WHERE c.oid >= 16384 AND x.relname <> 'pg_toast_' || c.oid || '_index'
UNION ALL
SELECT 'TOAST of no table', t.oid::regclass::text, ''
FROM pg_class t LEFT JOIN pg_class c ON c.reltoastrelid = t.oid
WHERE t.relkind = 't' AND c.oid IS NULL
UNION ALL
SELECT 'one file', string_agg(c.oid::regclass::text, ' '), c.relfilenode::text
FROM pg_class c WHERE c.relfilenode <> 0
GROUP BY c.reltablespace, c.relfilenode HAVING count(*) > 1
UNION ALL
SELECT 'dangling', a.catalog, a.oid::text
FROM (SELECT 'pg_depend', d.objid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
	UNION SELECT 'pg_depend', d.refobjid FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass
	UNION SELECT 'pg_shdepend', d.objid FROM pg_shdepend d JOIN pg_database b ON b.oid = d.dbid
		WHERE d.classid = 'pg_class'::regclass AND b.datname = current_database()
	UNION SELECT 'pg_attribute', attrelid FROM pg_attribute
	UNION SELECT 'pg_statistic', starelid FROM pg_statistic
	UNION SELECT 'pg_index', indexrelid FROM pg_index
	UNION SELECT 'pg_type', typrelid FROM pg_type WHERE typrelid <> 0) a (catalog, oid)
WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = a.oid);
SELECT 'index', c.oid::regclass, r::text
FROM pg_class c, LATERAL $index_check(c.oid, true) r
WHERE c.relkind = 'i' AND c.relam = 403 AND $readable AND r::text <> '';
SQL

	$sql = "CHECKPOINT;\n$sql" unless $standby;
	$sql .= <<'SQL' unless $option{crashed};
WITH expected AS (
	SELECT pg_relation_filepath(oid) AS path FROM pg_class
	WHERE relkind IN ('r', 'i', 't', 'm', 'S') AND NOT relisshared AND relpersistence <> 't'
), folders AS (
	SELECT DISTINCT regexp_replace(path, '/[^/]*$', '') AS folder FROM expected
), found AS (
	SELECT DISTINCT folder || '/' || substring(file FROM '^\d+') AS path
	FROM folders, LATERAL pg_ls_dir(folder) file WHERE file ~ '^\d+'
)
SELECT 'file of no relation', path FROM (TABLE found EXCEPT TABLE expected) o
UNION ALL
SELECT 'no such file', path FROM (TABLE expected EXCEPT TABLE found) m;
SQL
	my ($rc, $out, $err) = $node->psql($dbname || 'postgres', $sql);

	return join "\n", grep { $_ ne '' } $out, $err;
}

# The storage of a database has no fault.
sub expect_sound
{
	my ($node, $dbname, $name, %option) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(substr(storage_faults($node, $dbname, %option), 0, 1000), '', $name);
}

# Tables whose names match have all pages, also of their TOAST, all-visible and
# all-frozen in the map, and marked so themselves.  So many pages there are at
# least, that the test does not hold for want of them.
sub expect_frozen
{
	my ($node, $dbname, $pattern, $pages, $name) = @_;
	my $readable = $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't' ? "AND relpersistence = 'p'" : '';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($node->safe_psql($dbname || 'postgres', <<SQL), "t|", $name);
WITH heaps AS (
	SELECT unnest(ARRAY[oid, reltoastrelid]) AS oid FROM pg_class
	WHERE relkind = 'r' AND relname ~ '$pattern' $readable
)
SELECT count(*) >= $pages, string_agg(format('%s %s: %s %s %s', oid::regclass, blkno, all_visible, all_frozen,
	pd_all_visible), ', ') FILTER (WHERE NOT (all_visible AND all_frozen AND pd_all_visible))
FROM heaps, LATERAL pg_visibility(oid) WHERE oid <> 0
SQL
}

# A psql that runs in the background and is spoken to command by command.
package ILoadTest::Session;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;

# psql may have gone when something is written to it
$SIG{PIPE} = 'IGNORE';

sub new
{
	my ($class, $node, %option) = @_;
	my $self = bless {
		in => '',
		out => '',
		err => '',
		error => '',
		mark => 0,
		timeout => IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default)
	}, $class;
	my $connstr = $node->connstr($option{dbname} || 'postgres');

	$connstr .= " user=$option{user}" if $option{user};
	$self->{run} = IPC::Run::start(
		[ 'psql', '-XqAt', '-v', 'VERBOSITY=verbose', '-d', $connstr ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{timeout});
	$self->{pid} = $self->query('SELECT pg_backend_pid()');
	return $self;
}

# The process id of its backend.
sub pid { return $_[0]->{pid}; }

# What the last command wrote to stderr: errors with SQLSTATE, notices.
sub error { return $_[0]->{error}; }

# Send a command, which wait() waits for.
sub send
{
	my ($self, $sql) = @_;

	$self->{mark}++;
	$self->{out} = $self->{err} = '';
	$self->{timeout}->start($PostgreSQL::Test::Utils::timeout_default);
	$self->{in} .= "$sql\n;\n\\echo mark $self->{mark}\n\\warn mark $self->{mark}\n";
	$self->{run}->pump_nb while length $self->{in};
	return;
}

# Wait for the command that was sent, or for the end of the connection; returns
# its output.
sub wait
{
	my ($self) = @_;
	my $mark = qr/^mark $self->{mark}\n/m;

	until ($self->{out} =~ $mark && $self->{err} =~ $mark)
	{
		last unless $self->{run}->pumpable;
		eval { $self->{run}->pump; 1 } or $@ =~ /process ended/ or die $@;
	}
	s/$mark// for $self->{out}, $self->{err};
	chomp($self->{out}, $self->{err});
	$self->{error} = $self->{err};
	return $self->{out};
}

sub query
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->wait;
}

# The same for several commands that must succeed.
sub must
{
	my ($self, $sql) = @_;
	my $out = $self->query($sql);

	die "$sql: $self->{error}" if $self->{error} =~ /ERROR|FATAL/;
	return $out;
}

# End the session, or notice that it has ended.
sub finish
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	eval { $self->{run}->finish };
	return;
}

1;
