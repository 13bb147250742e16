"""Programs that measure, count and list. The block with the number is in `failures`, though nothing fails."""

from planted_programs import Program

_LOAD = Program(
    ("wrk -t4 -c{n3} -d30s http://localhost:{port}/{subject}s", "hey -n {n4} http://{host}/{kebab}"),
    (
        "  [{n4}] {n2} connections, {n3} complete and 0 interrupted",
        "Status code 200: {n4} responses",
        "    {tenth}ms  {n4}",
    ),
    ("Non-2xx or 3xx responses: 0", "  Socket errors: connect 0, read 0, write 0, timeout 0"),
    (
        "  Latency Distribution\n     50%   {tenth}ms\n     «99%  {n3}.{n2}ms at {n3} connections»",
        "«Requests/sec:   {n4}.{n2}»\nTransfer/sec:    {tenth}MB",
        "     http_req_duration..: avg={tenth}ms min={hundredth}ms «p(95)={n3}.{n2}ms max={n4}ms»",
    ),
)
_CRITERION = Program(
    ("cargo bench --bench {snake}", "cargo bench -p {kebab} -- {subject}"),
    ("Benchmarking {snake}/{verb}: Collecting 100 samples", "Benchmarking {snake}/{verb}: Warming up for 3.0000 s"),
    ("Found {n1} outliers among 100 measurements ({n1}.00%)",),
    ("{snake}/{verb}   «time:   [{n2}.{n3} µs {n2}.{n3} µs {n2}.{n3} µs]»\n   change: [+{tenth}% +{tenth}%]",),
)
_GO_BENCH = Program(
    ("go test -bench . -benchmem ./pkg/{subject}", "go test -run=^$ -bench={pascal} ./..."),
    ("Benchmark{pascal}-8   \t {n4}\t  {n4} ns/op\t {n3} B/op", "pkg: example.com/{subject}/pkg/{snake}"),
    ("PASS",),
    ("«Benchmark{pascal}Parallel-8   {n4}   {n5} ns/op   {n4} B/op»",),
)
_PYPERF = Program(
    ("python -m pyperf timeit -s 'import {snake}'", "python tools/bench_{subject}.py"),
    ("{snake}: Mean +- std dev: {tenth} us +- {hundredth} us", "calibration: {n3} loops, {n2} values"),
    ("WARNING: the benchmark result may be unstable",),
    ("«{snake}: Mean +- std dev: {tenth} ms +- {hundredth} ms»", "«peak memory of {function}: {n3}.{n1} MiB»"),
)
_COUNTS = Program(
    (
        "psql -d {subject} -c 'select state, count(*) from {snake} group by 1'",
        "sqlite3 {snake}.db 'select * from stats'",
    ),
    (" {adjective}_{subject} | {n4}", " {snake} | {n3}"),
    (" no_error | {n4}",),
    (" «{adjective}_{snake} | {n5}»", " «{snake}_id_seq | {n5}»"),
)
_DISK = Program(
    ("du -ah build | sort -h | tail -n 200", "find build -name '*.idx' -printf '%s %p\\n'"),
    ("{tenth}M    build/{subject}/{snake}.o", "{n3}K    build/{subject}/{kebab}"),
    ("0    build/errors.txt",),
    ("«{n4}M    build/{subject}/{snake}.idx»", "«{tenth}G    build/cache/{kebab}»"),
)
_PORTS = Program(
    ("ss -ltnp", "sudo lsof -iTCP -sTCP:LISTEN -P"),
    ('LISTEN 0  128   0.0.0.0:{port}  0.0.0.0:*  users:(("{kebab}",pid={n4},fd={n1}))',),
    (),
    ('LISTEN 0  4096  «127.0.0.1:{port}  0.0.0.0:*  users:(("{kebab}"»,pid={n4},fd={n1}))',),
)
_COMMITS = Program(
    ("git log --oneline -150", "git log --oneline --graph main..{kebab}", "git reflog -80"),
    ("{hash} {verb} {adjective} {subject}s in the {role}", "{hash} Merge branch '{kebab}'", "{hash} tests for {camel}"),
    ("{hash} fix error text of the {role}",),
    ('«{hash} Revert "{verb} {subject}s in {snake}"»', "«{hash} (tag: v{version}) release {subject}»"),
)
_VERSIONS = Program(
    ("pip list", "npm ls --depth=1", "docker images", "apt list --installed"),
    ("{kebab}        {version}", "lib{subject}{n1}   {version}"),
    ("error-stack-parser    {version}",),
    ("«{kebab}   {version}   {hash}   {n1} weeks ago   {n3}MB»", "«{library}-{subject}   {version}»"),
)
_COVERAGE = Program(
    ("coverage report -m", "npx nyc report"),
    ("{path}      {n3}     {n1}    {n2}%   {n3}-{n3}", "{test}      {n3}     0   100%"),
    ("src/errors.py      {n2}      0   100%",),
    ("«{path}     {n3}    {n3}    {n2}%»   {n2}-{n3}", "«TOTAL     {n5}    {n4}    {n2}%»"),
)
_METRICS = Program(
    ("cat reports/{kebab}.json | jq .", "jq . metrics/{snake}.json", "curl -s localhost:{port}/stats | jq"),
    ('  "{snake}": {"count": {n3}, "mean": {tenth}},', '    "{camel}": {n4},'),
    ('  "errors": 0,', '  "last_error": null,'),
    (
        '  «"{snake}_p99_ms": {n3}.{n1}»,\n  "samples": {n4},',
        '  "{snake}": {\n    «"dropped_{subject}s": {n4}»,\n    "window_s": {n2}\n  },',
        '  «"{snake}_open_handles": {n3}»,',
    ),
)
_EVERYWHERE = (_LOAD, _COUNTS, _DISK, _PORTS, _COMMITS, _COMMITS, _VERSIONS, _METRICS, _METRICS)
_OF_WORLD = {"rust": (_CRITERION,), "go": (_GO_BENCH,), "python": (_PYPERF, _COVERAGE), "typescript": (_COVERAGE,)}


def measuring(world: str) -> tuple[Program, ...]:
    """The programs that measure in a kind of project."""
    return _EVERYWHERE + _OF_WORLD.get(world, ())
