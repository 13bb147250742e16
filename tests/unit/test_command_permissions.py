"""`/permissions` shows the rules in force and where they come from, and changes those of the session and the folder."""

from pathlib import Path

import pytest
from command_world import CommandWorld, FakeUser

from bradawl.app.policies import Policies
from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.slash_commands import CommandError
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Allow, Ask, Deny, Request, Sandbox, decide


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    made = CommandWorld(tmp_path)
    made.script = [{"text": "x"}] * 5
    folder = made.home / ".config/bradawl"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[permissions]\ndeny = ["Bash(curl:*)"]\n')
    settings = made.settings()
    made.agent_changes = {
        "policy": Policies(settings, (str(made.project),), (), "", lambda: Sandbox()),
    }
    return made


def decision(talk, *argv: str):
    effects = Effects(commands=(argv,), seal="x")
    return type(decide(talk.session.session.policy(), Request("bash", "", effects, ("Bash",))))


async def test_a_rule_holds_for_the_session_and_its_later_runs_until_it_is_removed(world):
    async with world.conversation() as talk:
        assert decision(talk, "npm", "test") is Ask and decision(talk, "curl", "x") is Deny
        assert await talk.type("/permissions allow Bash(npm test:*)") == "Bash(npm test:*): allow, in this session."
        assert decision(talk, "npm", "test") is Allow, "also before the first prompt"
        await talk.type("/permissions deny Bash(make:*)")
        await talk.prompt("a")
        assert decision(talk, "make") is Deny
    async with world.conversation(talk.session.id) as again:
        assert (decision(again, "npm", "test"), decision(again, "make")) == (Allow, Deny)
        lines = (await again.type("/permissions")).splitlines()
        assert lines[0].startswith("mode default")
        assert lines[2].startswith(" 1  deny  Bash(curl:*)  (") and "config.toml" in lines[2]
        assert lines[3:5] == [" 2  allow Bash(npm test:*)  (this session)", " 3  deny  Bash(make:*)  (this session)"]
        assert "built-in rules protect" in lines[5]
        assert await again.type("/permissions remove 2") == "Removed: allow Bash(npm test:*)."
        assert decision(again, "npm", "test") is Ask
        with pytest.raises(CommandError, match=r"Rule 1 comes from .*config\.toml"):
            await again.type("/permissions remove 1")
    async with world.conversation(talk.session.id) as last:
        assert (decision(last, "npm", "test"), decision(last, "make")) == (Ask, Deny)


async def test_a_refusal_of_the_settings_is_stronger_than_a_permission_of_the_session(world):
    async with world.conversation() as talk:
        await talk.type("/permissions allow Bash(curl:*)")
        assert decision(talk, "curl", "x") is Deny


async def test_a_rule_can_hold_in_the_folder_from_now_on_and_be_taken_out_again(world):
    async with world.conversation() as talk:
        text = await talk.type("/permissions allow always Bash(npm test:*)")
        assert text.startswith("Bash(npm test:*): allow, in this folder from now on (")
        await talk.type("/permissions allow always Bash(make:*)")
    async with world.conversation() as other:
        assert decision(other, "npm", "test") is Allow
        assert " 2  allow Bash(npm test:*)  (" in await other.type("/permissions")
        await other.type("/permissions remove 2")
        assert (decision(other, "npm", "test"), decision(other, "make")) == (Ask, Allow)
        with pytest.raises(CommandError, match=r"permissions\.deny of your config\.toml"):
            await other.type("/permissions deny always Bash(x:*)")


async def test_a_user_at_the_terminal_chooses_how_long_a_permission_holds(world):
    user = FakeUser("always", "this session")
    async with world.conversation(user=user) as talk:
        assert "in this folder" in await talk.type("/permissions allow Bash(a:*)")
        assert "in this session" in await talk.type("/permissions allow Bash(b:*)")
        assert await talk.type("/permissions allow Bash(c:*)") == "Nothing was changed."
        assert (decision(talk, "a"), decision(talk, "b"), decision(talk, "c")) == (Allow, Allow, Ask)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/permissions allow", "needs a rule, such as Bash"),
        ("/permissions remove", "needs the number of a rule"),
        ("/permissions remove 9", "is not the number of a rule; they are 1 to 1"),
        ("/permissions remove x", "is not the number of a rule"),
        ("/permissions allow Bash(", "the rule 'Bash(' can't be used"),
        ("/permissions permit Bash(x)", "action must be allow, ask, deny or remove"),
    ],
)
async def test_a_wrong_line_says_what_is_right_and_changes_nothing(world, line, said):
    async with world.conversation() as talk:
        await talk.prompt("a")
        before = talk.session.session.policy()
        with pytest.raises(SettingsError) as refused:
            await talk.type(line)
        assert said in str(refused.value)
        assert talk.session.session.policy() == before


async def test_rules_of_a_later_version_in_the_log_allow_nothing_and_still_refuse(world):
    from bradawl.core.events import RulesAdded

    async with world.conversation() as talk:
        talk.session.session.choices.record(RulesAdded(("allow Bash(", "bash(ls)", "deny Edit(")))
        policy = talk.session.session.policy()
        added = [rule for rule in policy.rules if rule.source == "this session"]
        assert added and {rule.verdict for rule in added} == {"deny"}


def test_comments_and_other_rules_stay_where_one_is_removed(tmp_path):
    (tmp_path / "project").mkdir()
    memory = RememberedRules(str(tmp_path / "data"), str(tmp_path / "project"), "")
    memory.add(["Bash(a:*)", 'Bash(say "b":*)', "Bash(c:*)"])
    path = Path(memory.path)
    text = path.read_text()
    path.write_text(text.replace('allow = "Bash(c:*)"', '# mine\nallow = "Bash(c:*)"  # why'))
    memory.remove('Bash(say "b":*)')
    assert memory.texts == ("Bash(a:*)", "Bash(c:*)") and "# mine" in path.read_text()
    with pytest.raises(SettingsError, match="remove it there yourself"):
        memory.remove("Bash(c:*)")
    with pytest.raises(SettingsError, match="remove it there yourself"):
        memory.remove("Bash(unknown)")
    assert memory.texts == ("Bash(a:*)", "Bash(c:*)")
