"""Recognises in the output of a command that it reached no network, and tells its errors from text it only shows."""

import re
from typing import Final

# Error messages of resolvers, sockets and common clients, collected by running them without a network.
NO_NETWORK: Final = (
    r"Could(?:n't| not) resolve (?:host|proxy|')|[Tt]emporary failure in name resolution|Name or service not known"
    r"|[Uu]nable to resolve host|failed to lookup address information|nodename nor servname provided"
    r"|No address associated with hostname|server misbehaving|\bEAI_AGAIN\b|\bENOTFOUND\b|\bENETUNREACH\b"
    r"|\bEHOSTUNREACH\b|[Nn]etwork is unreachable|No route to host|Temporary failure resolving|UnknownHostException"
    r"|NameResolutionError|\bgaierror\b|Could not resolve hostname|Name does not resolve|Bad hostname '"
    r"|(?i:dial (?:tcp|udp)\b[^\n]*(?:permission denied|not permitted))"
    r"|(?i:\bconnect(?:ion|ing)?\b[^\n]{0,120}(?:\bEACCES\b|\bEPERM\b|permission denied \(os error 13\)))"
    r"|(?i:\bconnecting to [^\n]{1,200} failed: (?:permission denied|operation not permitted))"
    r"|(?i:\bsocket\b[^\n]{0,40}: (?:operation not permitted|permission denied))"
    r"|Failed to connect to (?!localhost|127\.|\[?::1)[^\n]{1,200}(?:Couldn't connect to server|Permission denied)"
    r"|npm (?:ERR!|error) network |trouble with your network connection|You appear to be offline"
    r"|Unable to download data from https?:|Could not reach host [\w.-]+\. Check your network"
    r"|All attempts to connect to [\w.-]+ failed|HTTP 000 CONNECTION FAILED|\bNU1301\b"
)
NOTHING_FOUND: Final = r"\(from versions: none\)|(?m:^ERROR: No matching distribution found for )"
"""What pip prints if it reaches no index, and also for a package that does not exist."""
_HOST: Final = (
    r"(?:[Rr]esolv(?:e|ing) (?:host(?:name)?(?: address)?)?|[Ll]ook(?:ing)? ?up|ENOTFOUND|EAI_AGAIN"
    r"|[Cc]onnect(?:ing)? to|connect to host|host name|UnknownHostException:|Bad hostname|[Rr]each host|https?://)"
    r"[: '\"\u2018]*((?:[A-Za-z0-9_-]+\.)+[A-Za-z0-9_-]*[A-Za-z0-9])"
)
_TEST_RUNNERS: Final = (
    r"\b(?:pytest|py\.test|unittest|nosetests|tox|nox|jest|vitest|mocha|ava|rspec|minitest|phpunit|ctest|bats"
    r"|(?:npm|pnpm|yarn|bun)(?: run)? (?:t|test\S*)|node --test|(?:cargo|go|deno|swift|mix) (?:test|nextest)\S*)\b"
)
_SHOWS: Final = (
    r"(?:^|[;&\n(]|\|\|)\s*(?:sudo )?(?:cat|tac|nl|bat|head|tail|less|more|grep|egrep|fgrep|rg|ag|sed|awk|cut|sort|uniq"
    r"|diff|strings|xxd|jq|yq|journalctl|dmesg|git (?:-\S+ (?:\S+ )?)?(?:log|show|diff|grep|blame)|docker logs"
    r"|kubectl logs)\b"
)
"""Programs that show files and logs, where no other program feeds them."""
_EXCEPTION: Final = r"(?m)^\s*(?:E\s+|\u25cf\s*)?(?!AssertionError)(?:[A-Za-z_]\w*\.)*\w*(?:[Ee]rror|Exception)\b.*$"
"""The line of an exception, as test runners print one that a test raised."""
_LOCAL_CLIENT: Final = r"\b(curl|wget)\b[^|;&\n]*(?:\blocalhost\b|\b127\.\d+\.\d+\.\d+|\[::1\])"
_NOT_CONNECTED: Final = {"curl": 7, "wget": 4}
"""The exit codes of clients that could not connect, which print nothing with `-s` or `-q`."""
_IN_BACKGROUND: Final = r"(?<![&>])&(?![&>\d])"
_QUOTED: Final = r"(?m)^(?:\S+:\d+[:-]|\s*E?\s*(?:assert\b|AssertionError)|[-+<>|]).*$\n?"
"""Lines that show text of a file or an expected value: matches of a search, assertions, differences."""


def errors_in(command: str, stdout: bytes, stderr: bytes) -> str:
    """The part of a command's output that can be errors of its own: without what it only shows, such as a log."""
    parts = [stderr] if re.search(_SHOWS, command) else [stderr, stdout]
    text = re.sub(_QUOTED, "", "\n".join(part.decode("utf-8", "replace") for part in parts))
    return "\n".join(line for line in text.split("\n") if not line.strip() or line.strip() not in command)


def own_errors(command: str, errors: str) -> str:
    """The errors that name what really failed: of test runs, which print what they expect, only exceptions."""
    return "\n".join(re.findall(_EXCEPTION, errors)) if re.search(_TEST_RUNNERS, command) else errors


def host_in(text: str) -> str:
    """The host that a message about the network names; empty if it names none."""
    found = re.search(NO_NETWORK, text)
    if not found:
        return ""
    start, end = text.rfind("\n", 0, found.start()) + 1, text.find("\n", found.end())
    host = re.search(_HOST, text[start : end if end >= 0 else len(text)])
    return host[1] if host else ""


def reached_no_local_server(command: str, codes: tuple[int | None, ...]) -> bool:
    """Whether the exit codes of a line, which starts no server itself, say that a client reached no local server."""
    if re.search(_IN_BACKGROUND, command):
        return False
    return any(_NOT_CONNECTED[name] in codes for name in re.findall(_LOCAL_CLIENT, command))
