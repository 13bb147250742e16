"""Programs of a project: their commands, the lines they print, and how a failure reads in their output.

A failure is a block of lines; the fact in it is the text between `«` and `»`.
"""

from typing import NamedTuple


class Program(NamedTuple):
    """What a program prints. All texts are templates."""

    commands: tuple[str, ...]
    lines: tuple[str, ...]
    """Lines of a run in which nothing is wrong."""
    decoys: tuple[str, ...]
    """Lines that look like problems and are harmless."""
    failures: tuple[str, ...]
    head: str = ""
    passed: str = ""
    failed: str = ""
    exit_code: int = 1
    fails_on_stderr: bool = False


PYTEST = Program(
    (
        "python -m pytest {test}",
        "pytest -q tests -k {subject}",
        "uv run pytest -x {test} 2>&1 | tail -400",
        "make test T={test}",
    ),
    (
        "{test}::test_{function} PASSED",
        "{test}::test_{snake}_is_kept PASSED",
        "{test}::Test{pascal}::test_{verbs}_{adjective}_{subject}s PASSED",
        "{test}::test_{snake}[{adjective}-{n2}] PASSED",
        "{test} ..............................",
    ),
    (
        "{test}::test_raises_error_for_{adjective}_{subject} PASSED",
        "{test}::test_{snake}_failure_is_reported PASSED",
        "  {path}:{n3}: DeprecationWarning: {method} is deprecated, use {method} instead",
        "{test}::test_{snake}_on_windows SKIPPED (needs Windows)",
        "{test}::test_{function}_exception_text XFAIL",
    ),
    (
        "    def test_{function}():\n>       assert {camel}.{verb}({n2}) == {n3}\n"
        "E       AssertionError: assert {n3} == {n3}\nE        +  where «{n3} = {method}({n2}, {snake}={n2})»",
        "    def {function}(self, rows):\n>       return rows[{snake}]\nE       «KeyError: '{snake}_{n2}'»\n\n"
        "{path}:{n3}: KeyError",
        '  File "{path}", line {n3}, in {function}\n    {snake}.{verb}()\n'
        "«AttributeError: '{pascal}' object has no attribute '{snake}'»",
        "E   «fixture '{snake}' not found»\n>   available fixtures: cache, capfd, monkeypatch, {snake}, tmp_path",
        "E       Failed: «DID NOT RAISE <class '{subject}.{pascal}Refused'>»",
        "E           «sqlite3.OperationalError: no such column: {snake}.{subject}_at»",
        "+++++++++++++++++++++++ Timeout +++++++++++++++++++++++\n"
        '«~~ Stack of {kebab}-{n2} ({n4}) ~~»\n  File "{path}", line {n3}, in {function}\n    self._ready.wait()',
        "E       - {'{snake}': {n2}}\nE       + {'{snake}': None}\nE       «? {upper}: expected {n2} got {n3}»",
    ),
    "============ test session starts ============\nplatform linux -- Python 3.12.4, pytest-9.0.1, pluggy-1.6.0\n"
    "rootdir: /srv/{subject}\nplugins: xdist-3.8.0, asyncio-1.3.0\ncollected {n3} items\n",
    "============ {n3} passed, {n1} skipped, {n2} warnings in {tenth}s ============",
    "============ 1 failed, {n3} passed, {n2} warnings in {tenth}s ============",
)
MYPY = Program(
    ("mypy src", "python -m mypy --strict {path}", "make types"),
    (
        '{path}: note: In function "{function}":',
        "{path}:{n3}: note: See https://mypy.readthedocs.io/en/stable/common_issues.html",
        "{path}:{n3}: note: unused section(s) in module {snake}",
    ),
    ('{path}: note: 0 errors in module "{snake}"', '{path}:{n3}: note: "{pascal}" defined here'),
    (
        '{path}:{n3}: error: «Argument "{snake}" to "{function}" has incompatible type "str"»; expected "{pascal}"',
        '{path}:{n3}: error: «Item "None" of "{pascal} | None" has no attribute "{snake}"»  [union-attr]',
        '{path}:{n3}: error: «Missing return statement in "{function}"»  [return]',
    ),
    "",
    "Success: no issues found in {n3} source files",
    "Found 1 error in 1 file (checked {n3} source files)",
)
PYTHON = Program(
    (
        "python tools/{snake}.py --limit {n4}",
        "uv run python -m {subject}.{role} {otherpath}",
        "python scripts/{snake}.py 2>&1 | tail -n 300",
    ),
    (
        "{date} {time},{millis} INFO {subject}.{role}: {past} {n3} {subject}s in {n2} ms",
        "{date} {time},{millis} DEBUG {subject}.{role}: next page after {uuid}",
        "{date} {time},{millis} INFO {snake}: worker {n2} idle",
        "{n2}%|#########           | {n4}/{n4} [00:{n2}<00:{n2}, {tenth}it/s]",
    ),
    (
        "{date} {time},{millis} WARNING urllib3.connectionpool: Retrying (Retry(total=2)) after connection broken",
        "{date} {time},{millis} INFO {subject}.{role}: 0 errors, 0 failures so far",
        "/usr/lib/python3/dist-packages/{snake}.py:{n3}: FutureWarning: the default of {snake} will change",
    ),
    (
        'Traceback (most recent call last):\n  File "{path}", line {n3}, in {function}\n'
        "    row = {snake}[{subject}_id]\n"
        '  File "{path}", line {n3}, in __getitem__\n    raise {pascal}Missing(key)\n'
        "«{subject}.errors.{pascal}Missing: {subject}-{n5}»",
        "{date} {time},{millis} CRITICAL {subject}.{role}: «{subject} {uuid} seen twice with different checksums»",
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe4 in position {n4}: invalid continuation byte\n"
        "  while reading «{subject}s-{date}.csv at offset {n5}»",
        "{date} {time},{millis} WARNING {subject}.{role}: «giving up on {kebab} after {n2} redeliveries»",
        "«asyncio.exceptions.InvalidStateError: {pascal}.{verb} awaited in loop {n4}»",
        "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation: "
        "«bucket {kebab}-{n3} reduce your request rate»",
    ),
    "",
    "{date} {time},{millis} INFO {subject}.{role}: finished",
    "",
    1,
    True,
)
CARGO_TEST = Program(
    ("cargo test -p {kebab}", "cargo nextest run --workspace", "cargo test {subject} -- --nocapture"),
    (
        "test {snake}::tests::{function} ... ok",
        "test {snake}::{verbs}_{adjective}_{subject} ... ok",
        "        PASS [   0.{n3}s] {kebab} {snake}::{function}",
        "   Compiling {kebab} v{version}",
    ),
    (
        "test {snake}::tests::error_is_displayed ... ok",
        "test {snake}::tests::panics_on_{adjective}_{subject} - should panic ... ok",
        "warning: unused variable: `{snake}`",
        "test {snake}::tests::{function} ... ignored",
    ),
    (
        "---- {snake}::tests::{function} stdout ----\n\n"
        "thread '{snake}::tests::{function}' panicked at {path}:{n3}:{n2}:\n"
        "«called `Option::unwrap()` on a `None` value in {snake}»\nnote: run with `RUST_BACKTRACE=1`",
        "thread '{kebab}-{n1}' panicked at {path}:{n3}:{n1}:\n"
        "assertion `left == right` failed: «{subject} {snake} out of order»\n"
        "  left: {n3}\n right: {n3}",
        "thread 'main' panicked at {path}:{n3}:{n2}:\n«range end index {n4} out of range for slice of length {n3}»",
        "«attempt to subtract with overflow, {path}:{n3}:{n2}»",
        "     SIGABRT [  {tenth}s] {kebab} {snake}::{function}\n  «free(): double free detected in {function}»",
    ),
    "    Finished `test` profile [unoptimized + debuginfo] target(s) in {tenth}s\n     Running unittests {path}\n"
    "running {n3} tests",
    "test result: ok. {n3} passed; 0 failed; {n1} ignored; 0 measured; 0 filtered out; finished in {tenth}s",
    "test result: FAILED. {n3} passed; 1 failed; {n1} ignored; 0 measured; 0 filtered out; finished in {tenth}s",
    101,
)
CARGO_BUILD = Program(
    ("cargo build --release", "cargo check --workspace --all-targets", "cargo clippy --all"),
    (
        "   Compiling {kebab} v{version}",
        "    Checking {kebab} v{version} (/srv/{subject}/crates/{kebab})",
        "  Downloaded {library} v{version}",
        "   Compiling {library} v{version}",
    ),
    (
        "   Compiling thiserror v{version}",
        "   Compiling error-chain v{version}",
        "warning: field `{snake}` is never read\n   --> {path}:{n3}:{n1}",
    ),
    (
        "error[E0502]: «cannot borrow `self.{snake}` as mutable because it is also borrowed as immutable»\n"
        "   --> {path}:{n3}:{n2}\n    |\n{n3} |         self.{snake}.{verb}(&mut self.{snake});\n"
        "    |         ^^^^^^^^^^",
        "error[E0277]: «`Rc<{pascal}>` cannot be sent between threads safely»\n   --> {path}:{n3}:{n2}",
        "error[E0308]: mismatched types\n   --> {path}:{n3}:{n2}\n    |\n{n3} |     {snake}\n"
        "    |     ^^^^^ «expected `{pascal}`, found `Option<{pascal}>`»",
        "error[E0599]: «no method named `{function}` found for struct `{pascal}` in the current scope»\n"
        "   --> {path}:{n3}:{n1}",
        "  = note: rust-lld: «undefined symbol: {snake}_{verb}_v{n1}»\n  >>> referenced by {snake}.rs:{n3}",
    ),
    "    Updating crates index",
    "    Finished `dev` profile [unoptimized + debuginfo] target(s) in {tenth}s",
    "error: could not compile `{kebab}` (lib) due to 1 previous error; {n1} warnings emitted",
    101,
    True,
)
GO_TEST = Program(
    ("go test ./... -v", "go test -race ./internal/{subject}/...", "go test -run Test{pascal} ./pkg/... -count=1"),
    (
        "=== RUN   Test{pascal}/{adjective}_{subject}",
        "    --- PASS: Test{pascal}/{adjective}_{subject} (0.{n2}s)",
        "--- PASS: Test{pascal} (0.{n2}s)",
        "ok  \texample.com/{subject}/internal/{snake}\t{tenth}s",
        "?   \texample.com/{subject}/pkg/{snake}\t[no test files]",
    ),
    (
        "--- PASS: Test{pascal}Error (0.00s)",
        "=== RUN   Test{pascal}/fails_on_{adjective}_{subject}",
        "--- SKIP: Test{pascal}Windows (0.00s)",
        "{date} {time} http: TLS handshake error from 127.0.0.1:{port}: EOF",
    ),
    (
        "    --- FAIL: Test{pascal}/{adjective} (0.{n2}s)\n"
        "        {file}:{n3}: «{pascal}.{verb}({n2}) = {n3}, want {n3}»",
        "==================\nWARNING: DATA RACE\nWrite at 0x00c000{hash} by goroutine {n3}:\n"
        "  «example.com/{subject}/internal/{snake}.(*{pascal}).{verb}()»\n      /srv/{subject}/{path}:{n3} +0x{n3}",
        "panic: «assignment to entry in nil map {camel}» [recovered]\n\ngoroutine {n3} [running]:\n"
        "testing.tRunner.func1.2",
        "fatal error: «all goroutines are asleep - deadlock in {camel}!»\n\ngoroutine 1 [chan receive, {n1} minutes]:",
        "    {file}:{n3}: «{method}: context deadline exceeded after {n4}ms»",
        "        {file}:{n3}: \n            Error Trace:\t{path}:{n3}\n            «Not equal: {upper} {n3} vs {n3}»",
    ),
    "",
    "ok  \texample.com/{subject}\t{tenth}s",
    "FAIL\texample.com/{subject}/internal/{snake}\t{tenth}s\nFAIL",
)
GO_BUILD = Program(
    ("go build ./...", "go vet ./...", "golangci-lint run ./internal/{subject}/..."),
    (
        "example.com/{subject}/internal/{snake}",
        "github.com/example/{library}/{snake}",
        "go: downloading {library} v{version}",
    ),
    ("github.com/pkg/errors", "example.com/{subject}/internal/errors"),
    (
        "{path}:{n3}:{n1}: «undefined: {snake}.{pascal}Options»",
        "{path}:{n3}:{n2}: «cannot use {camel} (variable of type *{pascal}) as {pascal}Store value»",
        "{path}:{n3}:{n1}: «declared and not used: {camel}»",
        "package example.com/{subject}\n\timports {snake}\n"
        "\timports {snake}: «import cycle not allowed through {snake}»",
    ),
    "",
    "",
    "",
    1,
    True,
)
VITEST = Program(
    ("npx vitest run", "pnpm test --filter {kebab}", "npm test -- {test}"),
    (
        " ✓ {test} ({n2} tests) {n3}ms",
        "   ✓ {pascal} > {verbs} a {adjective} {subject}",
        "   ✓ {pascal} > keeps the {subject} after {verb}",
        " ✓ {test} > {camel} > renders {n2} rows {n2}ms",
    ),
    (
        "   ✓ {pascal} > shows an error for a {adjective} {subject}",
        "stderr | {test} > {camel}\nWarning: An update to {pascal} inside a test was not wrapped in act(...)",
        "(node:{n4}) ExperimentalWarning: {pascal} is an experimental feature",
    ),
    (
        " FAIL  {test} > {pascal} > {verbs} twice\nTypeError: «Cannot read properties of undefined (reading "
        "'{camel}')»\n"
        " \u276f {method} {path}:{n3}:{n2}",
        " \u00d7 {pascal} > {verbs} the {subject}\n"
        '   → «expected "{method}" to be called {n1} times, but got {n2} times»',
        '- Expected  - 1\n+ Received  + 1\n\n-   "{camel}": {n3},\n«+   "{camel}": "{n3}",»',
        'Error: «[vitest] No "{camel}" export is defined on the mock» of "{kebab}"',
        "⎯⎯⎯ Unhandled Rejection ⎯⎯⎯\n«{pascal}AbortedError: {subject} {uuid} left the queue»",
    ),
    "\n RUN  v3.2.4 /srv/{subject}\n",
    " Test Files  {n2} passed ({n2})\n      Tests  {n3} passed ({n3})\n   Duration  {tenth}s",
    " Test Files  1 failed | {n2} passed ({n2})\n      Tests  1 failed | {n3} passed ({n3})\n   Duration  {tenth}s",
)
