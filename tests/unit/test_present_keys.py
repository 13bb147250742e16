"""Keys that exist, and where links in folders of keys lead."""

from pathlib import Path

from bradawl.sandbox.discovery.present_keys import PresentKeys


def made(path: Path, text: str = "key") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_targets_of_links_in_folders_of_keys_count_as_keys(tmp_path):
    home = tmp_path / "home"
    made(home / ".aws/config")
    target = made(home / "dotfiles/aws/credentials")
    far = made(tmp_path / "data/keys/id")
    work = made(tmp_path / "ws/gh/hosts.yml")
    (home / ".aws/credentials").symlink_to("../dotfiles/aws/credentials")
    (home / ".aws/far").symlink_to(tmp_path / "data/keys")
    (home / ".aws/own").symlink_to("config")
    (home / ".aws/work").symlink_to(work)
    (home / ".aws/home").symlink_to(home)
    (home / ".aws/top").symlink_to("/")
    (home / ".aws/system").symlink_to("/usr/bin")
    (home / ".aws/dangling").symlink_to("missing")
    keys = PresentKeys((f"{home}/.aws", f"{home}/.netrc"), str(home), (str(tmp_path / "ws"),), ())
    assert set(keys.now()) == {f"{home}/.aws", target, str(Path(far).parent)}


def test_links_are_found_when_they_are_made_and_lead_to_what_is_there_now(tmp_path):
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    keys = PresentKeys((f"{home}/.aws",), str(home), (), ())
    assert keys.now() == (f"{home}/.aws",)
    (home / ".aws/credentials").symlink_to(home / "later")
    assert keys.now() == (f"{home}/.aws",)
    later = made(home / "later")
    assert keys.now() == (f"{home}/.aws", later)
    (home / ".aws/credentials").unlink()
    assert keys.now() == (f"{home}/.aws",)


def test_files_and_folders_that_cannot_be_listed_have_no_links(tmp_path):
    key = made(tmp_path / "home/.netrc")
    assert PresentKeys((key, f"{key}/below"), "", ()).now() == (key,)
