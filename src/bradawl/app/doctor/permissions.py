"""Checks of the permissions of a run: mode, rules and network."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from bradawl.app.doctor.check import Check
from bradawl.app.modes import WHOLE_NETWORK, mode_text
from bradawl.app.settings.load import read_settings, settings_with
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import BradawlError
from bradawl.core.permissions import Policy
from bradawl.core.rules import path_rules

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent

BuildAgent = Callable[[Settings, Callable[[str], None]], "Agent"]
"""Builds an agent and calls the function with each warning."""
_NETWORK_VERDICTS: Final = {
    "allow": "commands reach without a question",
    "ask": "always asked about",
    "deny": "refused",
}
_ONE_LABEL: Final = r"[\w-]+(?::\d+)?"
_NO_PRESET: Final = "a host of your own network and no preset; docs/permissions.md lists the presets"


def permission_checks(agent: "Agent") -> list[Check]:
    """Mode, rules and network of the next call."""
    try:
        policy = agent.policy()
    except BradawlError as error:
        return [Check("permissions", "problem", str(error))]
    return [Check("mode", "ok", mode_text(policy.mode)), *rule_checks(policy), *network_checks(policy)]


async def rules_without_a_model(
    options: Mapping[str, object], environ: Mapping[str, str], cwd: str, build: BuildAgent
) -> list[Check]:
    """Mode and rules, where no model can be chosen; nothing if the settings can't be read either."""
    warnings: list[str] = []
    try:
        settings = settings_with(read_settings(options, environ, cwd), ModelSettings("none", "none"))
        agent = build(settings, warnings.append)
    except BradawlError:
        return []  # the check of the settings reports it
    try:
        checks = permission_checks(agent)
        return [*(Check("warning", "warning", warning) for warning in warnings), *checks]
    finally:
        await agent.aclose()


def rule_checks(policy: Policy) -> list[Check]:
    """A warning about rules that deny paths, if no sandbox enforces them on programs."""
    rules = [rule.text for rule in path_rules(policy.rules) if rule.verdict == "deny" and rule.places]
    if not rules or (policy.sandbox.name and "credentials" not in policy.sandbox.lacks):
        return []
    text = (
        f"{', '.join(dict.fromkeys(rules))}: nothing here hides files from programs; unclear commands are asked about"
    )
    return [Check("rules", "warning", text)]


def network_checks(policy: Policy) -> list[Check]:
    """The rules about hosts that commands may reach, each with its source."""
    rules = [rule for rule in policy.rules if rule.on in ("connect", "network")]
    checks: list[Check] = []
    for verdict, what in _NETWORK_VERDICTS.items():
        found: dict[str, list[str]] = {}
        for rule in rules:
            if rule.verdict == verdict:
                text = f"any host for `{rule.text}`" if rule.on == "network" else rule.text
                found.setdefault(rule.source, []).append(text)
        named = "; ".join(f"{', '.join(dict.fromkeys(texts))} ({source})" for source, texts in found.items())
        checks += [Check("network", "ok", f"{what}: {named}")] if named else []
    if own := [rule.text for rule in rules if rule.verdict == "allow" and re.fullmatch(_ONE_LABEL, rule.text)]:
        checks.append(Check("network", "warning", f"{', '.join(dict.fromkeys(own))}: {_NO_PRESET}"))
    if policy.sandbox.name and not policy.sandbox.limits_hosts:
        checks.append(Check("network", "warning", WHOLE_NETWORK))
    return checks or [Check("network", "ok", "commands reach no host without a question")]
