"""Rules about paths of a workspace that depend on what the home folder and the repository hold."""

from bradawl.core.rules import Rule
from bradawl.safety.git.run_paths import paths_run_by_git
from bradawl.safety.home_links import HomeLinks
from bradawl.safety.permissions.protected_paths import linked_from_home_rules, run_by_git_rules


def workspace_rules(roots: tuple[str, ...], home: str) -> tuple[Rule, ...]:
    """Rules for paths in `roots` to which links in the home folder lead, and for those from which git runs something.

    They describe the present state of the disk.
    """
    links = HomeLinks(home)
    linked = linked_from_home_rules(
        tuple(path for root in roots for path in links.at_login(root)),
        tuple(path for root in roots for path in links.of_programs(root)),
    )
    return (*linked, *run_by_git_rules(tuple(path for root in roots for path in paths_run_by_git(root, home))))
