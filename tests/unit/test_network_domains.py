"""Domains as settings and rules name them: which destinations they cover, and which texts are rejected."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.settings.network_presets import check_domains
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Allow, Ask, Deny, Policy, Request, Sandbox, decide
from bradawl.core.rules import Rule
from bradawl.safety.permissions.domains import DESTINATION, Domain, parse_domain, parse_grant
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import domain_rule, parse_project_rule, parse_rule

BASES = Bases("/ws/.bradawl", "/home/u", "/ws")
HELD = Sandbox("bubblewrap")


def rules(text: str, verdict="allow") -> tuple[Rule, ...]:
    return parse_rule(text, verdict, "config.toml", BASES)


def connection(host: str) -> Request:
    return Request("network", "0" * 64, Effects(hosts=(host,), lifts=("host",)))


def fetch(host: str) -> Request:
    return Request("web_fetch", "0" * 64, Effects(hosts=(host,)), ("WebFetch",))


def verdict(host: str, *found: Rule, mode="auto", make=connection) -> str:
    return {Allow: "allow", Ask: "ask", Deny: "deny"}[type(decide(Policy(mode, rules=found, sandbox=HELD), make(host)))]


# ------------------------------------------------------------------ parsing


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("depot.org", Domain("depot.org")),
        (" DePoT.ORG. ", Domain("depot.org")),
        ("X.org", Domain("x.org")),
        ("\t*.XX.org ", Domain("xx.org", is_below=True)),
        ("*.example.net", Domain("example.net", is_below=True)),
        ("*.Example.net.", Domain("example.net", is_below=True)),
        ("registry.corp:8443", Domain("registry.corp", port=8443)),
        ("*.registry.corp:65535", Domain("registry.corp", is_below=True, port=65_535)),
        ("intranet", Domain("intranet")),
        ("_dmarc.example.org", Domain("_dmarc.example.org")),
        ("bücher.example", Domain("xn--bcher-kva.example")),
        ("xn--bcher-kva.example", Domain("xn--bcher-kva.example")),
        ("1.example.org", Domain("1.example.org")),
        ("0xabc.example", Domain("0xabc.example")),
    ],
)
def test_a_domain_is_read_in_lower_case_and_punycode(text: str, domain: Domain):
    assert parse_domain(text) == domain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("*", "every host"),
        ("https://depot.org", "URL"),
        ("https://depot.org/simple", "URL"),
        ("depot.org/simple", "can't be part of a host"),
        ("depot.org?x", "can't be part of a host"),
        ("evil.com#.depot.org", "can't be part of a host"),
        ("evil.com\\.depot.org", "can't be part of a host"),
        ("depot.org@evil.com", "user name"),
        ("user:secret@depot.org", "user name"),
        ("depot.org evil.com", "can't be part of a host"),
        ("depot.org\x00.evil.com", "invisible"),
        ("depot\u200b.org", "invisible"),
        ("depot\u202e.org", "invisible"),
        ("depot.org\n", "invisible"),
        ("depot\u3002org", "punycode"),
        ("\uff44epot.org", "punycode"),
        ("depot\uff0eorg", "punycode"),
        ("straße.example", "punycode"),
        ("xn--a.example", "not valid punycode"),
        ("xn--\uff10.example", "punycode"),
        (".example.org", "not the name of a host"),
        ("example..org", "not the name of a host"),
        ("example.org..", "not the name of a host"),
        (".", "not the name of a host"),
        ("*.", "not the name of a host"),
        ("-a.example", "not the name of a host"),
        ("a-.example", "not the name of a host"),
        ("a" * 64 + ".example", "not the name of a host"),
        (".".join(["a" * 62] * 4) + ".example", "longer than 253"),
        ("a." * 200, "longer than"),
        ("*.*.example", "a star"),
        ("a.*.example", "a star"),
        ("ex*mple.org", "a star"),
        ("*example.org", "a star"),
        ("**.example.org", "a star"),
        ("*.com", "top-level domain"),
        ("10.0.0.1", "an address"),
        ("127.1", "an address"),
        ("2130706433", "an address"),
        ("0x7f000001", "an address"),
        ("0x7f.1", "an address"),
        ("0177.0.0.1", "an address"),
        ("10.0.0.1.", "an address"),
        ("*.0.0.1", "an address"),
        ("[::1]", "addresses"),
        ("::1", "addresses"),
        ("fe80::1%eth0", "addresses"),
        ("depot.org:", "not a port"),
        ("depot.org:0", "not a port"),
        ("depot.org:65536", "not a port"),
        ("depot.org:+81", "not a port"),
        ("depot.org:\u0668\u0661", "not a port"),
        ("depot.org:081", "not a port"),
        ("depot.org:443", "leave the port out"),
        ("depot.org:80", "leave the port out"),
    ],
)
def test_what_names_no_domain_is_an_error_that_says_why(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse_domain(text)
    for source in ("allow", "ask", "deny"):
        if text.strip() not in ("", "*"):
            with pytest.raises(SettingsError):
                rules(f"Network({text})", source)


HINT = "write a name such as docs.example.org, *.example.net for all names below it, or registry.corp:8443"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"it is empty; {HINT}"),
        ("a" * 300, f"{'a' * 300!r}: the host name is longer than 253 characters; {HINT}"),
        ("a" * 301, "it is longer than 300 characters"),
        ("a\0b", "it contains an invisible character"),
        ("https://a.org", f"it is a URL, and only its host can be named; {HINT}"),
        ("me@a.org", f"it contains a user name; {HINT}"),
        ("a.org/x", f"'/' can't be part of a host; {HINT}"),
        ("*", 'it would be every host; network_commands = ["*"] allows any public host to every command'),
        ("*.a*.org", f"a star can only be the first of several names, as in *.example.net; {HINT}"),
        ("*.org", f"*.org would cover a whole top-level domain; {HINT}"),
        ("[10.0.0.1]", f"addresses can't be named, only hosts; {HINT}"),
        ("::1", f"addresses can't be named, only hosts; {HINT}"),
        ("a..org", f"'a..org': that is not the name of a host; {HINT}"),
        ("a.org:x", "'x' is not a port; ports are from 1 to 65535"),
        ("a.org:443", "a name without a port covers the ports 80 and 443; leave the port out"),
        (
            "stra\u00dfe.de",
            "'stra\u00dfe.de' has characters that programs encode differently; write the name in punycode (xn--)",
        ),
    ],
)
def test_the_text_of_an_error_says_what_to_write(text: str, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_domain(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("localhost", "no command can reach it: the name of this machine"),
        ("app.localhost:8000", "no command can reach it: the name of this machine"),
        ("*.localhost", "top-level domain"),
        ("metadata.google.internal", "no command can reach it: cloud metadata"),
        ("com", "com is a top-level domain"),
        ("dev:8443", "dev is a top-level domain"),
        ("*.co.uk", "anyone can get a name below co.uk; name the hosts, as in example.co.uk"),
        ("*.com.au", "anyone can get a name below com.au"),
        ("*.github.io", "anyone can get a name below github.io"),
        ("*.blob.core.windows.net:8443", "anyone can get a name below blob.core.windows.net"),
    ],
)
def test_a_domain_that_can_not_be_granted_is_an_error_that_says_why_and_can_be_refused(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse_grant(text)
    with pytest.raises(SettingsError, match=message):
        rules(f"Network({text})", "allow")
    with pytest.raises(SettingsError, match=message):
        check_domains((text,), "x")
    if message != "top-level domain":
        assert rules(f"Network({text})", "deny") and rules(f"Network({text})", "ask")


@pytest.mark.parametrize(
    "text",
    [
        "intranet",
        "git.corp",
        "co.uk",
        "*.example.co.uk",
        "me.github.io",
        "*.me.github.io",
        "*.corp.io",
        "*.ab.cde",
        "github:8443",
        "pipe:81",
    ],
)
def test_a_name_of_a_private_network_and_a_single_owner_can_be_granted(text: str):
    assert parse_grant(text) == parse_domain(text)
    check_domains((text,), "x")


@pytest.mark.parametrize(
    "text", ["PIP", "Npm", "pipp", "carg", "pip:443", "github:80", " Pnpm ", "npn", "nmp", "ip", "gihtub", "pi", "ap"]
)
def test_a_misspelled_preset_is_an_error_that_names_the_preset(text: str):
    with pytest.raises(SettingsError, match=r"there is no preset .* did you mean (pip|npm|pnpm|cargo|github|apt)[?]"):
        check_domains((text,), "x")


@given(st.text(max_size=40))
def test_any_text_is_a_domain_or_a_value_error_and_a_domain_covers_only_names_that_end_like_it(text: str):
    try:
        domain = parse_domain(text)
    except ValueError:
        return
    assert domain.name.isascii() and domain.name == domain.name.lower() and DESTINATION.fullmatch(domain.name)
    assert parse_domain(domain.name) == Domain(domain.name)


# ------------------------------------------------------------------ what they cover

NAME = "depot.org"
LOOKALIKES = [
    "depot.org.evil.com",
    "evil-depot.org",
    "evildepot.org",
    "depotxorg",
    "xn--pyi-6cd.org",
    "depot.org:8443",
    "evil.com",
]


@pytest.mark.parametrize("host", [*LOOKALIKES, "files.depot.org"])
def test_a_granted_name_covers_that_host_alone(host: str):
    rule = rules("Network(depot.org)")
    assert verdict(NAME, *rule) == "allow"
    assert verdict(host, *rule) == "ask"


def test_a_star_covers_the_names_below_and_not_the_name_itself():
    rule = rules("Network(*.example.net)")
    for host in ("a.example.net", "a.b.example.net"):
        assert verdict(host, *rule) == "allow"
    for host in ("example.net", "aexample.net", ".example.net", "a.example.net:81", "a.net"):
        assert verdict(host, *rule) == "ask"


def test_a_port_covers_that_port_alone():
    rule = rules("Network(registry.corp:8443)")
    assert verdict("registry.corp:8443", *rule) == "allow"
    for host in ("registry.corp", "registry.corp:84430", "registry.corp:843", "a.registry.corp:8443"):
        assert verdict(host, *rule) == "ask"


@pytest.mark.parametrize("text", ["Network(example.org)", "Network(*.example.org)", "WebFetch(domain:example.org)"])
@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("prefix", ["", "a.", "a.b."])
@pytest.mark.parametrize("end", ["", ":22"])
def test_a_refused_domain_covers_all_below_on_every_port_for_commands(text, kind, prefix, end):
    granted = domain_rule("example.org", "x")
    assert verdict(f"{prefix}example.org{end}", *rules(text, kind), granted) == kind
    for host in ("example.org.evil.com", "notexample.org", "example.orgx"):
        assert verdict(host, *rules(text, "deny")) == "ask"


def test_a_refused_port_covers_that_port_alone():
    found = rules("Network(example.org:22)", "deny")
    assert verdict("a.example.org:22", *found) == "deny"
    assert verdict("example.org", *found) == verdict("example.org:221", *found) == "ask"


def test_a_refusal_holds_in_every_mode():
    found = rules("WebFetch(domain:example.org)", "deny")
    for mode in ("default", "accept-edits", "plan", "auto", "bypass"):
        assert verdict("example.org", *found, mode=mode) == "deny"


@pytest.mark.parametrize("text", ["Network", "Network(*)", "network"])
def test_all_of_the_network_can_be_refused_and_asked_about_but_not_granted(text: str):
    for host in ("example.org", "a.corp:22"):
        assert verdict(host, *rules(text, "deny"), mode="bypass") == "deny"
        assert verdict(host, *rules(text, "ask"), domain_rule("example.org", "x")) == "ask"
    assert verdict("example.org", *rules(text, "deny"), make=fetch) == "deny"
    with pytest.raises(SettingsError, match="name a domain"):
        rules(text)


def test_a_rule_for_web_fetch_grants_nothing_to_commands_and_one_for_commands_covers_web_fetch():
    fetched, connected = rules("WebFetch(domain:example.org)"), rules("Network(example.org)")
    assert verdict("example.org", *fetched, make=fetch) == "allow"
    assert verdict("example.org", *fetched) == "ask"
    assert verdict("example.org", *connected, make=fetch) == "allow"
    assert verdict("a.example.org", *connected, make=fetch) == "ask"


def test_rules_for_web_fetch_cover_every_port_and_those_for_commands_the_ports_that_they_name():
    other = "example.org:8443"
    for text in ("WebFetch(domain:example.org)", "WebFetch(domain:*)"):
        assert verdict(other, *rules(text), make=fetch) == "allow"
        assert verdict(other, *rules(text, "deny"), make=fetch) == "deny"
        assert verdict(f"a.{other}", *rules(text, "deny"), make=fetch) == "deny"
    assert verdict(other, *rules("Network(example.org)"), make=fetch) == "ask"
    assert verdict(other, *rules("Network(example.org:8443)"), make=fetch) == "allow"
    assert verdict(other, *rules("Network(example.org:8443)", "deny"), make=fetch) == "deny"
    assert verdict("2606:4700::1111", *rules("WebFetch(domain:2606:4700::1111)", "deny"), make=fetch) == "deny"
    assert verdict("evilexample.org:8443", *rules("WebFetch(domain:example.org)"), make=fetch) == "ask"


def test_rules_that_allow_the_tool_bash_allow_no_connection():
    found = (*rules("Bash"), *rules("Bash(curl *)"), *rules("WebFetch"))
    assert verdict("example.org", *found) == "ask"


@pytest.mark.parametrize("mode", ["default", "accept-edits", "auto"])
def test_a_connection_is_asked_about_by_its_host(mode):
    found = decide(Policy(mode, sandbox=HELD), connection("example.org:81"))
    assert isinstance(found, Ask) and found.reason == "it reaches example.org:81"


def test_plan_mode_refuses_a_connection_and_names_the_host():
    refused = decide(Policy("plan", sandbox=HELD), connection("example.org"))
    assert isinstance(refused, Deny) and "the command would reach example.org" in refused.reason


def test_bypass_asks_about_no_connection():
    assert verdict("example.org", mode="bypass") == "allow"


@pytest.mark.parametrize(
    ("sandbox", "reason"),
    [
        (HELD, "it asks for any public host"),
        (Sandbox("landlock", ("domains",)), "it asks for the network"),
        (Sandbox("landlock", ("credentials",)), "it asks for any public host"),
    ],
)
def test_a_request_for_the_network_says_what_it_covers(sandbox: Sandbox, reason: str):
    asked = Request("bash", "0" * 64, Effects(unknown=True, seal="s", lifts=("network",)))
    found = decide(Policy("auto", sandbox=sandbox), asked)
    assert isinstance(found, Ask) and found.reason == reason


def test_a_sandbox_that_can_not_limit_hosts_still_contains_commands():
    assert Sandbox("landlock", ("domains",)).holds_anything and not Sandbox("landlock", ("domains",)).limits_hosts
    assert not Sandbox("landlock", ("domains", "ptrace")).holds_anything and not Sandbox().limits_hosts


def test_an_invalid_domain_in_a_projects_file_refuses_the_network_or_is_ignored():
    found, warning = parse_project_rule("Network(https://x.org)", "deny", "p", BASES)
    assert verdict("example.org", *found) == "deny" and "Until then Network is refused" in warning
    assert parse_project_rule("Network(https://x.org)", "allow", "p", BASES)[0] == ()
    assert parse_project_rule("https://x.org", "domain", "p", BASES)[0] == ()


@given(st.from_regex(r"\A[a-z0-9]{1,8}(\.[a-z0-9]{1,8}){1,3}\Z"), st.from_regex(r"\A[a-z0-9.:-]{0,20}\Z"))
def test_a_granted_name_never_covers_another_host(name: str, other: str):
    try:
        pattern = parse_domain(name).allowed()
        below = parse_domain(f"*.{name}").allowed()
    except ValueError:
        return
    for host in (other, other + name, name + other):
        assert not re.fullmatch(pattern, host) or host == name
        assert not re.fullmatch(below, host) or (host.endswith("." + name) and ":" not in host)
