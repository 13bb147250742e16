"""The setting `network`: what may be written in it, and the rules and private hosts that it becomes."""

import pytest

from bradawl.app.policies import Policies, network_rules, private_hosts
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.network_presets import PRESETS, check_domains
from bradawl.app.settings.permission_values import RuleText
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Sandbox
from bradawl.core.rules import speaks_of


@pytest.mark.parametrize(
    ("text", "message"),
    [("pipp", "did you mean pip"), ("carg", "did you mean cargo"), ("https://x.org", "URL"), ("*", "every host")],
)
def test_an_entry_that_is_neither_a_domain_nor_a_preset_is_an_error(text: str, message: str):
    with pytest.raises(SettingsError, match=message) as caught:
        check_domains((text,), "--network")
    assert str(caught.value).startswith("--network: ")


def test_presets_domains_and_names_of_the_local_network_are_entries():
    check_domains((*PRESETS, "example.org", "*.example.org", "registry.corp:8443", "intranet", "pip:8080"), "x")


# ------------------------------------------------------------------ policies


def settings(*texts: str, is_projects=False, environment: dict[str, str] | None = None) -> Settings:
    rules = tuple(RuleText("domain", text, "x", "/", is_projects) for text in texts)
    model = ModelSettings("none", "none")
    return Settings(model=model, cwd="/", home="/nonexistent", rules=rules, environment=environment or {})


def covered(found, host: str) -> bool:
    return any(speaks_of(rule, host) for rule in found)


def test_the_domains_of_a_policy_are_those_of_the_setting_and_of_its_presets():
    given = settings("pip", "registry.corp", environment={"PIP_INDEX_URL": "https://pip.corp/simple"})
    found = network_rules(given, ())
    assert {rule.text for rule in found} == {"pip.corp", "registry.corp"}
    assert {rule.source for rule in found} == {"x, preset pip", "x"}
    assert covered(found, "pip.corp") and covered(found, "registry.corp")
    policies = Policies(given, ("/ws",), (), "", Sandbox)
    assert not policies.has_rules and set(found) <= set(policies().rules)


def test_the_notes_of_presets_are_reported_once():
    told = []
    given = settings("docker", "a.example", "pip", environment={"PIP_INDEX_URL": "http://10.0.0.5/"})
    assert {rule.text for rule in network_rules(given, (), told.append)} == {"docker", "a.example"}
    assert [text.partition(":")[0] for text in told] == ["the preset pip of `network` grants no default index"]
    told.clear()
    policies = Policies(given, ("/ws",), (), "", Sandbox, notify=told.append)
    assert not told
    policies()
    policies()
    assert len(told) == 1


def test_an_invalid_domain_of_a_projects_file_is_left_out():
    found = network_rules(settings("registry.corp", "https://x.org", is_projects=True), ())
    assert [rule.text for rule in found] == ["registry.corp"]


def test_only_hosts_that_the_users_setting_names_in_full_may_have_private_addresses():
    variables = {"PIP_INDEX_URL": "https://pip.corp:8443/simple"}
    given = settings("pip", "Registry.corp.", "*.b.corp", "db.corp:5432", environment=variables)
    assert private_hosts(given, ()) == {"pip.corp:8443", "registry.corp", "db.corp:5432"}
    assert private_hosts(settings("a.corp", "pip", is_projects=True, environment=variables), ()) == frozenset()
    assert private_hosts(settings(), ()) == frozenset()


def test_an_invalid_domain_of_an_embedding_program_is_an_error():
    with pytest.raises(SettingsError, match="URL"):
        network_rules(settings("https://x.org"), ())
