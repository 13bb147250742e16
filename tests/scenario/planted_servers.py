"""More programs: builds of other languages, databases, containers, machines, and programs that measure."""

from planted_programs import CARGO_BUILD, CARGO_TEST, GO_BUILD, GO_TEST, MYPY, PYTEST, PYTHON, VITEST, Program

TSC = Program(
    ("npx tsc --noEmit", "pnpm -r typecheck", "npx tsc -b packages/{subject}"),
    (
        "[{time}] Project 'packages/{subject}/tsconfig.json' is up to date",
        "[{time}] Building project '/srv/{subject}/packages/{snake}/tsconfig.json'...",
        "packages/{kebab} typecheck: Done",
    ),
    ("[{time}] Found 0 errors. Watching for file changes.", "packages/{kebab} typecheck$ tsc --noEmit --pretty false"),
    (
        "{path}({n3},{n2}): error TS2339: «Property '{camel}' does not exist on type '{pascal}Props'»",
        "{path}({n3},{n2}): error TS2345: «Argument of type '{pascal}' is not assignable to parameter of type "
        "'{pascal}'»",
        "{path}:{n3}:{n2} - error TS18048: «'{camel}.{subject}' is possibly 'undefined'»",
    ),
    "",
    "",
    "Found 1 error in {path}:{n3}",
    2,
)
NPM = Program(
    ("npm ci", "npm run build", "pnpm install --frozen-lockfile"),
    (
        "dist/assets/{kebab}-{hash}.js   {tenth} kB │ gzip: {tenth} kB",
        "npm http fetch GET 200 https://registry.example/{kebab} {n3}ms (cache hit)",
        "Progress: resolved {n3}, reused {n3}, downloaded {n2}, added {n3}",
    ),
    (
        "npm warn deprecated {kebab}@{version}: this package is no longer supported",
        "npm notice found 0 vulnerabilities",
        "(!) Some chunks are larger than 500 kB after minification",
    ),
    (
        "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve\n"
        'npm error «peer {kebab}@"^{version}" from {library}»',
        '✗ Build failed in {tenth}s\n«"{pascal}" is not exported by "{path}"», imported by "{path}".',
        " ERR_PNPM_OUTDATED_LOCKFILE  «specifiers in the lockfile don't match {kebab}/package.json»",
    ),
)
GRADLE = Program(
    ("./gradlew test --tests '*{pascal}*'", "./gradlew :{subject}:check", "./gradlew build --console=plain"),
    (
        "> Task :{subject}:compileJava UP-TO-DATE",
        "{pascal}Test > {method}() PASSED",
        "> Task :{snake}:processResources NO-SOURCE",
        "{pascal}Test > {method}When{pascal}IsEmpty() PASSED",
    ),
    (
        "{pascal}Test > throwsExceptionFor{pascal}() PASSED",
        "Note: {path} uses unchecked or unsafe operations.",
        "Deprecated Gradle features were used in this build, making it incompatible with Gradle 10.",
        "OpenJDK 64-Bit Server VM warning: Sharing is only supported for boot loader classes",
    ),
    (
        "{pascal}Test > {method}() FAILED\n    «java.lang.IllegalStateException: {camel} already closed» at "
        "{file}:{n3}\n"
        "        at com.example.{subject}.{pascal}.{verb}({pascal}.java:{n3})",
        "Caused by: «org.hibernate.LazyInitializationException: failed to lazily initialize {pascal}.{subject}s»\n"
        "\tat com.example.{subject}.{pascal}.{method}({pascal}.java:{n3})\n\t... {n2} more",
        "{path}:{n3}: error: «incompatible types: Optional<{pascal}> cannot be converted to {pascal}»",
        "    «expected: <{upper}> but was: <{upper}>»\n        at app//org.junit.jupiter.api.AssertionUtils.fail",
        "\n{pascal}Test > {method}() FAILED\n    Wanted but not invoked:\n    «{camel}.{verb}({n3}L);»\n"
        "    -> at com.example",
        "java.lang.NoSuchMethodError: «'void com.example.{subject}.{pascal}.{verb}(java.lang.String)'»",
    ),
    "Starting a Gradle Daemon (subsequent builds will be faster)",
    "BUILD SUCCESSFUL in {n2}s\n{n2} actionable tasks: {n1} executed, {n2} up-to-date",
    "BUILD FAILED in {n2}s\n{n2} actionable tasks: {n1} executed, {n2} up-to-date",
)
MAVEN = GRADLE._replace(
    commands=("mvn -q -pl {subject} test", "mvn verify -Dtest={pascal}Test"),
    lines=(
        "[INFO] Tests run: {n2}, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: {tenth} s -- in "
        "com.example.{pascal}Test",
        "[INFO] --- surefire:3.5.2:test (default-test) @ {kebab} ---",
        "[INFO] Copying {n1} resources from src/main/resources to target/classes",
    ),
    head="[INFO] Scanning for projects...",
    passed="[INFO] BUILD SUCCESS\n[INFO] Total time:  {tenth} s",
    failed="[INFO] BUILD FAILURE\n[INFO] Total time:  {tenth} s",
)
MAKE = Program(
    ("make -j8", "make -C build {subject}", "cmake --build build --target {snake}", "make check"),
    (
        "  CC      {subject}/{snake}.o",
        "[ {n2}%] Building C object src/CMakeFiles/{snake}.dir/{snake}.c.o",
        "gcc -O2 -g -Wall -Iinclude -c -o build/{snake}.o {path}",
        "  AR      lib{subject}.a",
    ),
    (
        "  CC      util/error.o",
        "{path}:{n3}:{n2}: warning: unused parameter '{snake}' [-Wunused-parameter]",
        "checking for strerror_r... yes",
    ),
    (
        "/usr/bin/ld: build/{snake}.o: in function `{function}':\n{path}:{n3}: «undefined reference to `{function}'»",
        "{path}:{n3}:{n2}: error: «'struct {snake}' has no member named '{snake}'»; did you mean '{subject}'?",
        "==={n4}===ERROR: AddressSanitizer: «heap-use-after-free on address {address} at {function}»\n"
        "READ of size 8 at {address} thread T0\n    #0 {address} in {function} {path}:{n3}",
        "{path}:{n3}:{n1}: «runtime error: left shift of {n3} by {n2} places in {snake}»",
        '{file}:{n3}: «static assertion failed: "{snake} must fit one {subject} page"»',
        "make[2]: *** «No rule to make target '{path}', needed by '{snake}.o'».  Stop.",
    ),
    "",
    "make[1]: Leaving directory '/srv/{subject}/build'",
    "make: *** [Makefile:{n3}: all] Error 2",
    2,
)
CTEST = Program(
    ("ctest --test-dir build --output-on-failure", "./build/{snake}_test", "valgrind -q ./build/{snake}_test"),
    (
        "      Start {n3}: {function}",
        "{n3}/{n3} Test #{n3}: {function} ...............   Passed    {hundredth} sec",
        "[       OK ] {pascal}.{verbs}_{subject} ({n2} ms)",
    ),
    (
        "[       OK ] {pascal}.reports_error_for_{adjective}_{subject} ({n2} ms)",
        "[  SKIPPED ] {pascal}.{verbs}_on_big_endian",
    ),
    (
        "[  FAILED  ] {pascal}.{verb}\n  Expected equality of these values:\n"
        "    «{snake}_count() Which is: {n3}»\n    {n3}",
        "{n3}/{n3} Test #{n3}: «{function} ....***Exception: SegFault» {hundredth} sec",
        "=={n4}== «Invalid write of size 4 in {function}»\n=={n4}==    by {address}: main ({file}:{n3})",
        "=={n4}== «{n5} bytes in {n2} blocks are definitely lost» in loss record {n2}",
    ),
    "Test project /srv/{subject}/build",
    "100% tests passed, 0 tests failed out of {n3}",
    "99% tests passed, 1 tests failed out of {n3}",
    8,
)
PSQL = Program(
    (
        'psql "$URL" -f {otherpath}',
        "psql -h {host} -d {subject} -c '\\d+ {snake}'",
        "psql -d {subject} < db/{snake}.sql",
    ),
    (
        " {n4} | {snake}_{n2} | {date} {time}.{n3} | {tenth} | {adjective}",
        "INSERT 0 {n2}",
        "   ->  Index Scan using {snake}_idx on {snake}  (cost=0.{n2}..{n3}.{n2} rows={n4} width={n2})",
        " {snake} | bigint | not null | plain |",
    ),
    (
        'NOTICE:  relation "{snake}" already exists, skipping',
        " {n4} | error_text | {date} {time} | 0 | none",
        "NOTICE:  drop cascades to view {snake}_v{n1}",
    ),
    (
        'psql:{otherpath}:{n3}: ERROR:  «insert or update on table "{snake}" violates foreign key constraint» '
        '"{snake}_fk"\n'
        'DETAIL:  Key ({subject}_id)=({n4}) is not present in table "{subject}s".',
        'FATAL:  «role "{snake}_rw" is not permitted to log in»',
        "ERROR:  «could not serialize access due to concurrent update of {snake}»\nSTATEMENT:  UPDATE {subject}s",
        "ERROR:  deadlock detected\nDETAIL:  «Process {n4} waits for ShareLock on transaction {n5}»",
        "   ->  «Seq Scan on {snake}  (cost=0.00..{n5}.00 rows={n5})»\n         Filter: ({subject}_id = {n3})",
        'ERROR:  «duplicate key value violates unique constraint "{snake}_key"»',
    ),
    "",
    "({n3} rows)",
    "ROLLBACK",
    3,
)
MIGRATE = PSQL._replace(
    commands=("alembic upgrade head", "flyway migrate -configFiles=config/{snake}.conf", "dbmate --env {upper}_URL up"),
    lines=(
        "INFO  [alembic.runtime.migration] Running upgrade {hash} -> {hash}, {verb} {snake}",
        "Applied: {n4}_{function}.sql",
    ),
    passed="Current version: {hash}",
    failed="Rolled back {n4}_{function}.sql",
    exit_code=1,
)
DOCKER = Program(
    ("docker build -t {kebab} .", "docker compose up -d {subject}", "docker compose logs --tail 400 {kebab}"),
    (
        "#{n2} {tenth} Get:{n2} http://deb.example.org/debian trixie/main amd64 lib{subject}{n1} amd64 "
        "{version} [{n3} kB]",
        "#{n2} sha256:{sha} {tenth}MB / {tenth}MB {tenth}s done",
        '{kebab}-1  | {date}T{time}.{millis}Z level=info msg="{past} {subject}" id={n4} took={n2}ms',
        "#{n2} CACHED",
    ),
    (
        "#{n2} {tenth} debconf: delaying package configuration, since apt-utils is not installed",
        '{kebab}-1  | {date}T{time}.{millis}Z level=info msg="errors=0 warnings=0" component={snake}',
        "WARN[0000] {otherpath}: `version` is obsolete",
    ),
    (
        '#{n2} ERROR: failed to solve: «failed to compute cache key: "/{snake}.lock" not found»',
        "Error response from daemon: «driver failed programming external connectivity on {kebab}»: port is "
        "already allocated",
        "{kebab}-1 exited with code 137\n«{kebab} OOMKilled=true limit={n3}Mi»",
        "{kebab}-1  | «exec /usr/local/bin/{kebab}: exec format»\n{kebab}-1 exited with code 1",
        "#{n2} {tenth} E: «Unable to locate package lib{snake}-dev»",
        '{kebab}-1  | {date}T{time}.{millis}Z level=warn msg="«{subject} heartbeat missed {n2} times on {host}»"',
    ),
    '#0 building with "default" instance using docker driver',
    "#{n2} writing image sha256:{sha} done",
    "",
)
CI = Program(
    ("gh run view {n5} --log-failed", "gh run view --job {n5} --log | tail -n 500", "cat ci/{kebab}.log"),
    (
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z {test} . . . . ok",
        "{kebab}\tSet up job\t{date}T{time}.{n4}Z Prepare all required actions",
        "{kebab}\tInstall\t{date}T{time}.{n4}Z Collecting {library}=={version}",
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z   {method} ({n3} ms)",
    ),
    (
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z ##[warning]Node.js 20 actions are deprecated",
        "{kebab}\tUpload\t{date}T{time}.{n4}Z No files were found with the provided path: errors/",
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z continue-on-error: true",
    ),
    (
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z ##[error]«Process completed with exit code {n2} in step {kebab}»",
        "{kebab}\tRestore cache\t{date}T{time}.{n4}Z «Cache not found for input keys: {kebab}-{hash}»\n"
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z sh: 1: {kebab}: not found",
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z «glibc {version} or newer is required by {kebab}»",
        "{kebab}\tPublish\t{date}T{time}.{n4}Z denied: «installation not allowed to Write {subject}/{kebab}»",
        "{kebab}\tRun tests\t{date}T{time}.{n4}Z «The runner {host} lost communication after {n2} minutes»",
    ),
)
HTTP = Program(
    (
        "curl -sv http://localhost:{port}/v{n1}/{subject}s",
        "curl -i -X POST $API/{kebab} -d @{otherpath}",
        "hurl tests/{kebab}.hurl",
    ),
    (
        "< x-request-id: {uuid}",
        '  {"id": {n4}, "{snake}": "{kebab}", "{past}_at": "{date}T{time}Z", "{snake}": {tenth}},',
        "< {kebab}: {n3}",
        '  {"id": {n4}, "state": "{adjective}", "{subject}": {"{snake}": {n3}, "{snake}": null}},',
    ),
    (
        "* Connection #0 to host localhost left intact",
        '  {"id": {n4}, "error": null, "{snake}": {n2}},',
        "* Mark bundle as not supporting multiuse",
    ),
    (
        "< HTTP/1.1 409 Conflict\n< content-type: application/problem+json\n"
        '{"title": "«{subject} {n4} was changed by {kebab}»", "status": 409}',
        '< HTTP/1.1 422 Unprocessable Content\n{"detail": [{"loc": ["body", "{snake}"], "msg": "«{snake} must '
        'be one of {subject}, {role}»"}]}',
        "< HTTP/2 503\n< retry-after: {n2}\n«upstream connect failure: no healthy {kebab} host»",
        "* «SSL certificate problem: {kebab}.example.org expired on {date}»\ncurl: (60) More details here",
        '< HTTP/1.1 200 OK\n{"ok": false, "reason": "«{snake}_limit_{n3}»"}',
    ),
    "*   Trying 127.0.0.1:{port}...\n* Connected to localhost (127.0.0.1) port {port}",
    "]",
    "",
    22,
)
GIT = Program(
    ("git log -p -{n1} -- {path}", "git diff main...HEAD", "git show {hash}", "git diff --stat main"),
    (
        "@@ -{n3},{n1} +{n3},{n2} @@ def {function}",
        "+    {snake} = {function}({snake})",
        "-    {snake}.{verb}({snake}, {n2})",
        "     # the {subject} {role} is built once",
        " {path} | {n2} ++++++-----",
        "+        return {snake}.{verb}()",
    ),
    (
        "-        raise {pascal}Error({snake})",
        "+    except {pascal}Error:  # the caller logs it",
        "warning: LF will be replaced by CRLF in {path}",
    ),
    (
        "Auto-merging {path}\n«CONFLICT (content): Merge conflict in {path}»\nAutomatic merge failed; fix conflicts",
        " ! [remote rejected] {kebab} -> {kebab} («pre-receive hook declined: {kebab} needs a changelog»)",
        "fatal: «cannot lock ref 'refs/heads/{kebab}'»: is at {sha}",
        "«{file}: needs merge»\nerror: you need to resolve your current index first",
    ),
    "diff --git a/{path} b/{path}\nindex {hash}..{hash} 100644",
)
KUBECTL = Program(
    (
        "kubectl -n {subject} get events --sort-by=.lastTimestamp",
        "kubectl logs deploy/{kebab} --tail=300",
        "helm upgrade --install {kebab} charts/{subject}",
    ),
    (
        '{n2}m   Normal   Pulled   pod/{kebab}-{hash}   Container image "{kebab}:{version}" already present on machine',
        '{"ts":"{date}T{time}.{millis}Z","lvl":"info","msg":"{verb} {subject}","n":{n3},"trace":"{uuid}"}',
        "{n2}m   Normal   Scheduled   pod/{kebab}-{hash}   Successfully assigned {subject}/{kebab}-{hash} to {host}",
    ),
    (
        "{n2}m   Normal   Killing   pod/{kebab}-{hash}   Stopping container {subject}",
        '{"ts":"{date}T{time}.{millis}Z","lvl":"debug","msg":"no error","err":null}',
    ),
    (
        "{n2}m   Warning   Evicted   pod/{kebab}-{hash}   «node {host} was low on resource: ephemeral-storage»",
        '{n2}m   Warning   FailedMount   pod/{kebab}   «secret "{kebab}-tls" not found»',
        '{"ts":"{date}T{time}.{millis}Z","lvl":"fatal","msg":"«leader lease of {kebab} lost to {host}»"}',
        'Error: UPGRADE FAILED: «cannot patch "{kebab}" with kind StatefulSet»: spec is immutable',
        "{n2}m   Warning   Unhealthy   pod/{kebab}   «Readiness probe failed: dial tcp 10.0.{n3}.{n2}:{port}»",
    ),
)
JOURNAL = Program(
    (
        "journalctl -u {kebab} --since today --no-pager",
        "tail -n 400 /var/log/{subject}/{kebab}.log",
        "dmesg | tail -n 300",
    ),
    (
        "Mar {day} {time} {host} {kebab}[{n4}]: {past} {n3} {subject}s",
        "Mar {day} {time} {host} systemd[1]: Started {kebab}.service.",
        "Mar {day} {time} {host} {kebab}[{n4}]: GET /{subject}/{n4} 200 {n2}ms",
    ),
    (
        "Mar {day} {time} {host} {kebab}[{n4}]: error rate 0.0 over the last minute",
        "Mar {day} {time} {host} kernel: perf: interrupt took too long, lowering kernel.perf_event_max_sample_rate",
    ),
    (
        "Mar {day} {time} {host} {kebab}[{n4}]: «too many open files while accepting on {port}»",
        "[{n4}.{n3}] {kebab}[{n4}]: «segfault at 18 ip {address} in lib{subject}.so.{n1}»",
        "Mar {day} {time} {host} systemd[1]: «{kebab}.service: Start request repeated too quickly.»",
        "Mar {day} {time} {host} {kebab}[{n4}]: «clock jumped back {n4} ms, {subject} {role} stopped»",
        "Mar {day} {time} {host} {kebab}[{n4}]: «disk quota of {snake} exceeded by {n3} blocks»",
    ),
    exit_code=0,
)
TERRAFORM = Program(
    (
        "terraform plan -var-file=env/{subject}.tfvars",
        "terraform validate",
        "ansible-playbook ops/{kebab}.yaml --check",
    ),
    (
        "  # module.{snake}.aws_{subject}.{snake} will be updated in-place",
        "module.{snake}.data.{snake}: Read complete after {n1}s",
        "      ~ {snake}  = {n2} -> {n3}",
    ),
    ('      + error_document = "error.html"', "Warning: Argument is deprecated\n  on {path} line {n2}"),
    (
        '│ Error: «Unsupported argument "{snake}" in module {snake}»\n│   on {path} line {n2}',
        "│ Error: «creating {pascal}: {subject} quota of {n2} exceeded in eu-{n1}»",
        "│ Error acquiring the state lock: «lock {uuid} held since {date}»",
        "  # module.{snake}.{subject} «must be replaced: {snake} forces replacement»",
    ),
    "",
    "Plan: {n1} to add, {n2} to change, 0 to destroy.",
    "",
)
PROGRAMS: dict[str, Program] = {
    "pytest": PYTEST,
    "mypy": MYPY,
    "python": PYTHON,
    "cargo test": CARGO_TEST,
    "cargo build": CARGO_BUILD,
    "go test": GO_TEST,
    "go build": GO_BUILD,
    "vitest": VITEST,
    "tsc": TSC,
    "npm": NPM,
    "gradle": GRADLE,
    "maven": MAVEN,
    "make": MAKE,
    "ctest": CTEST,
    "psql": PSQL,
    "migrate": MIGRATE,
    "docker": DOCKER,
    "ci": CI,
    "http": HTTP,
    "git": GIT,
    "kubectl": KUBECTL,
    "journal": JOURNAL,
    "terraform": TERRAFORM,
}
