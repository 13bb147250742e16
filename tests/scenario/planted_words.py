"""Words of invented projects: names in code, paths, numbers, and templates that are filled with them."""

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")
_PLACEHOLDER = re.compile(r"\{([a-z]+\d?)(?:\.(\d))?\}")
_FACT = re.compile("«(.*?)»")

SUBJECTS = [
    "tenant",
    "shard",
    "ledger",
    "invoice",
    "rollout",
    "quota",
    "lease",
    "snapshot",
    "cursor",
    "webhook",
    "session",
    "replica",
    "batch",
    "checkpoint",
    "voucher",
    "inventory",
    "shipment",
    "catalog",
    "pricing",
    "refund",
    "settlement",
    "audit",
    "ingest",
    "digest",
    "route",
    "probe",
    "beacon",
    "mailbox",
    "telemetry",
    "sampler",
    "histogram",
    "manifest",
    "bundle",
    "locale",
    "thumbnail",
    "playlist",
    "subtitle",
    "sensor",
    "firmware",
    "geofence",
    "waypoint",
    "dispatch",
    "courier",
    "parcel",
    "depot",
    "meter",
    "tariff",
    "roster",
    "payroll",
    "clinic",
    "triage",
    "ticket",
    "coupon",
    "basket",
    "wishlist",
    "crawler",
    "sitemap",
    "annotation",
    "glyph",
    "raster",
    "tile",
    "palette",
    "codec",
    "packet",
    "frame",
    "beam",
    "orbit",
    "torque",
    "valve",
    "pump",
    "furnace",
]
ROLES = [
    "gate",
    "pool",
    "store",
    "reader",
    "writer",
    "policy",
    "guard",
    "planner",
    "mapper",
    "client",
    "registry",
    "budget",
    "window",
    "resolver",
    "bridge",
    "sweeper",
    "runner",
    "index",
    "tracker",
    "journal",
    "router",
    "loader",
    "merger",
    "splitter",
    "encoder",
    "limiter",
    "monitor",
]
VERBS = [
    "load",
    "store",
    "merge",
    "split",
    "expire",
    "renew",
    "flush",
    "replay",
    "seal",
    "rotate",
    "drain",
    "rank",
    "dedupe",
    "parse",
    "encode",
    "route",
    "sample",
    "compact",
    "publish",
    "claim",
    "release",
    "settle",
    "schedule",
    "validate",
    "normalize",
]
ADJECTIVES = [
    "stale",
    "nested",
    "partial",
    "empty",
    "expired",
    "duplicate",
    "oversized",
    "signed",
    "legacy",
    "remote",
    "pending",
    "shared",
]
LIBRARIES = [
    "libsodium",
    "protobuf",
    "zstd",
    "openssl",
    "redis-client",
    "sqlx",
    "serde",
    "hyper",
    "axum",
    "pydantic",
    "sqlalchemy",
    "celery",
    "jackson",
    "netty",
    "hibernate",
    "vite",
    "react-query",
    "zod",
    "esbuild",
    "grpc-go",
    "cobra",
    "lz4",
    "libuv",
    "boringssl",
    "kafka-clients",
    "psycopg",
]
HOSTS = [
    "db-replica-{n1}",
    "edge-{n2}",
    "cache-{n1}",
    "worker-{n2}",
    "ingest-{n1}",
    "queue-{n1}",
    "build-{n2}",
    "metrics-{n1}",
]


class World(NamedTuple):
    """The kind of project that a session works in."""

    name: str
    folders: tuple[str, ...]
    test_folders: tuple[str, ...]
    extension: str
    style: str
    """How its files are named: `snake`, `kebab` or `pascal`."""
    programs: tuple[str, ...]
    """Names of the programs that are run in it; see `planted_programs`."""


_EVERYWHERE = ("docker", "ci", "http", "git", "kubectl", "journal", "psql")
WORLDS = (
    World(
        "python",
        ("src/{subject}/{role}s", "src/{subject}", "app/services", "app/api/v{n1}", "deploy", "tools/{subject}"),
        ("tests/unit", "tests/{subject}", "tests/integration"),
        ".py",
        "snake",
        ("pytest", "pytest", "mypy", "python", *_EVERYWHERE),
    ),
    World(
        "rust",
        ("crates/{subject}-core/src", "crates/{subject}/src", "src/{role}", "crates/cli/src/commands"),
        ("crates/{subject}/tests", "tests"),
        ".rs",
        "snake",
        ("cargo test", "cargo build", "cargo build", *_EVERYWHERE),
    ),
    World(
        "go",
        ("internal/{subject}", "pkg/{subject}/{role}", "cmd/{subject}d", "internal/api"),
        ("internal/{subject}/testdata", "test/e2e"),
        ".go",
        "snake",
        ("go test", "go test", "go build", *_EVERYWHERE),
    ),
    World(
        "typescript",
        ("packages/{subject}/src", "apps/web/src/{role}s", "src/features/{subject}", "packages/ui/src/components"),
        ("packages/{subject}/test", "apps/web/src/__tests__"),
        ".ts",
        "kebab",
        ("vitest", "tsc", "npm", *_EVERYWHERE),
    ),
    World(
        "java",
        ("src/main/java/com/example/{subject}", "core/src/main/java/com/example/{subject}/{role}"),
        ("src/test/java/com/example/{subject}",),
        ".java",
        "pascal",
        ("gradle", "gradle", "maven", *_EVERYWHERE),
    ),
    World(
        "c",
        ("lib/{subject}", "src/{role}", "drivers/{subject}", "include/{subject}"),
        ("test/{subject}", "tests"),
        ".c",
        "snake",
        ("make", "make", "ctest", "git", "ci", "journal"),
    ),
    World(
        "sql",
        ("db/migrations", "warehouse/models/{subject}", "pipelines/{subject}", "db/functions"),
        ("warehouse/tests", "pipelines/tests"),
        ".sql",
        "snake",
        ("psql", "psql", "migrate", "python", "docker", "ci", "git"),
    ),
    World(
        "operations",
        ("charts/{subject}/templates", "deploy/{subject}", "terraform/modules/{subject}", "ops/{role}", ".ci/jobs"),
        ("deploy/tests", "charts/{subject}/ci"),
        ".yaml",
        "kebab",
        ("terraform", "kubectl", "docker", "ci", "journal", "http", "git"),
    ),
)
REASONS = (
    "the pool is shared by all tenants",
    "the workers restart every night",
    "two regions write at the same time",
    "the old clients never send that header",
    "the lock would be held across a network call",
    "a retry must not charge twice",
    "the file can be larger than memory",
    "the reader may be one release behind",
    "the driver rounds timestamps to milliseconds",
    "the order of the keys is part of the signature",
    "the mobile app caches it for a week",
    "a failed flush leaves half a page on disk",
    "the replica lags by up to a minute",
    "the broker delivers a message at least once",
    "its cost grows with the square of the number of routes",
    "support staff search for exactly that text",
    "the auditors compare the two exports",
    "the table has no index on it",
    "the scheduler has only one thread",
    "daylight saving time shifts the window",
)


class Words:
    """Fills templates with names and numbers of one project; the same chance gives the same words."""

    def __init__(self, chance: random.Random, world: World) -> None:
        self.chance = chance
        self.world = world
        self._favourites = chance.sample(SUBJECTS, 14)
        """Words that the project is about: they occur more often than others."""
        self._numbered: dict[str, str] = {}
        self._names: list[list[str]] = []
        self._paths: list[str] = []
        """Names and paths that occur again and again, as in a real session."""
        self._is_fresh = False
        self._names = [self.name() for _ in range(80)]
        self._paths = [self.path() for _ in range(36)]

    def one_of(self, items: Sequence[T]) -> T:
        """One of the items."""
        return self.chance.choice(items)

    def fill(self, template: str) -> str:
        """The template with a word for each placeholder; `{snake.1}` is the same name wherever it occurs."""
        self._numbered = {}
        return self._filled(template)

    def planted(self, template: str, *, is_fresh: bool = False) -> tuple[str, str]:
        """The filled template without the marks, and the text between `«` and `»`.

        With `is_fresh` its paths are new ones.
        """
        self._is_fresh = is_fresh
        text = self.fill(template)
        self._is_fresh = False
        found = _FACT.search(text)
        assert found is not None, template
        return _FACT.sub(r"\1", text), found[1]

    def _filled(self, template: str) -> str:
        return _PLACEHOLDER.sub(self._replacement, template)

    def _replacement(self, match: re.Match[str]) -> str:
        make = _MAKERS.get(match[1])
        if make is None:
            return match[0]
        if match[2] is None:
            return make(self)
        return self._numbered.setdefault(match[0], make(self))

    def subject(self) -> str:
        """A noun of the domain."""
        return self.chance.choice(self._favourites if self.chance.random() < 0.7 else SUBJECTS)

    def name(self) -> list[str]:
        """The words of a name in code."""
        if self._names and self.chance.random() < 0.6:
            return self.chance.choice(self._names)
        words = [self.subject(), self.chance.choice(ROLES)]
        draw = self.chance.random()
        if draw < 0.3:
            words.insert(0, self.chance.choice(ADJECTIVES))
        elif draw < 0.5:
            words.insert(0, self.subject())
        return words

    def file_name(self) -> str:
        """A file's name in the style of the project."""
        words = self.name()
        if self.world.name == "sql" and self.chance.random() < 0.6:
            words = [f"{self.chance.randint(20, 399):04}", self.chance.choice(VERBS), *words]
        styles = {"snake": "_".join(words), "kebab": "-".join(words), "pascal": "".join(map(str.title, words))}
        return styles[self.world.style] + self.world.extension

    def path(self) -> str:
        """A source file's path, relative to the project."""
        if self._paths and not self._is_fresh and self.chance.random() < 0.7:
            return self.chance.choice(self._paths)
        return f"{self._filled(self.chance.choice(self.world.folders))}/{self.file_name()}"

    def test_path(self) -> str:
        """A test file's path, relative to the project."""
        name = self.file_name()
        stem = name.removesuffix(self.world.extension)
        named = f"{stem}Test" if self.world.style == "pascal" else f"test_{stem}"
        return f"{self._filled(self.chance.choice(self.world.test_folders))}/{named}{self.world.extension}"

    def other_path(self) -> str:
        """The path of a file that is no source code."""
        return self._filled(
            self.chance.choice(
                (
                    "docs/{kebab}.md",
                    "config/{snake}.toml",
                    "config/{kebab}.yaml",
                    "scripts/{kebab}.sh",
                    "Makefile.{subject}",
                    ".github/workflows/{kebab}.yml",
                    "docker/{subject}/Dockerfile",
                    "ops/dashboards/{kebab}.json",
                    "docs/Übersicht {pascal}.md",
                    "proto/{subject}/v{n1}/{snake}.proto",
                    "locales/fr/{subject}.json",
                )
            )
        )

    def host(self) -> str:
        """The name of a machine."""
        return self._filled(self.chance.choice(HOSTS))

    def digits(self, low: int, high: int) -> str:
        """A whole number."""
        return str(self.chance.randint(low, high))

    def hexadecimal(self, count: int) -> str:
        """Lower-case hexadecimal digits."""
        return f"{self.chance.getrandbits(count * 4):0{count}x}"


def _past(verb: str) -> str:
    return {"split": "split", "compact": "compacted"}.get(verb, verb + ("d" if verb.endswith("e") else "ed"))


def _third_person(verb: str) -> str:
    return verb + ("es" if verb.endswith("sh") else "s")


def _camel(words: list[str]) -> str:
    return words[0] + "".join(map(str.title, words[1:]))


_MAKERS: dict[str, Callable[[Words], str]] = {
    "subject": Words.subject,
    "role": lambda w: w.chance.choice(ROLES),
    "verbs": lambda w: _third_person(w.chance.choice(VERBS)),
    "past": lambda w: _past(w.chance.choice(VERBS)),
    "day": lambda w: w.digits(10, 31),
    "verb": lambda w: w.chance.choice(VERBS),
    "adjective": lambda w: w.chance.choice(ADJECTIVES),
    "library": lambda w: w.chance.choice(LIBRARIES),
    "reason": lambda w: w.chance.choice(REASONS),
    "snake": lambda w: "_".join(w.name()),
    "kebab": lambda w: "-".join(w.name()),
    "camel": lambda w: _camel(w.name()),
    "pascal": lambda w: "".join(map(str.title, w.name())),
    "upper": lambda w: "_".join(w.name()).upper(),
    "function": lambda w: f"{w.chance.choice(VERBS)}_{'_'.join(w.name())}",
    "method": lambda w: _camel([w.chance.choice(VERBS), *w.name()]),
    "path": Words.path,
    "test": Words.test_path,
    "file": Words.file_name,
    "otherpath": Words.other_path,
    "host": Words.host,
    "n1": lambda w: w.digits(2, 9),
    "n2": lambda w: w.digits(11, 98),
    "n3": lambda w: w.digits(101, 989),
    "n4": lambda w: w.digits(1101, 9890),
    "n5": lambda w: f"{w.chance.randint(10_500, 989_000):,}",
    "tenth": lambda w: f"{w.chance.uniform(1.1, 98):.1f}",
    "hundredth": lambda w: f"{w.chance.uniform(0.05, 9):.2f}",
    "port": lambda w: w.digits(3100, 9990),
    "hash": lambda w: w.hexadecimal(w.chance.choice((7, 7, 8, 10, 12))),
    "sha": lambda w: w.hexadecimal(40),
    "address": lambda w: f"0x{w.hexadecimal(12)}",
    "uuid": lambda w: "-".join(w.hexadecimal(count) for count in (8, 4, 4, 4, 12)),
    "version": lambda w: f"{w.chance.randint(0, 14)}.{w.chance.randint(0, 48)}.{w.chance.randint(0, 19)}",
    "date": lambda w: f"2026-{w.chance.randint(1, 12):02}-{w.chance.randint(1, 28):02}",
    "time": lambda w: f"{w.chance.randint(0, 23):02}:{w.chance.randint(0, 59):02}:{w.chance.randint(0, 59):02}",
    "millis": lambda w: f"{w.chance.randint(0, 999):03}",
}
