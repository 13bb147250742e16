"""A repository below so many folders that a recursive check would end does not keep other planted files in place."""

from bwrap import needs_bwrap
from sandboxed_session import remove_folder, sandboxed_session

PLANT = """
import os
os.makedirs("docs/x/.git/objects"); os.makedirs("docs/x/.git/refs")
top = os.getcwd()
for _ in range(1_500):
    os.mkdir("d")
    os.chdir("d")
for place in (".git", f"{top}/docs/x/.git"):
    os.makedirs(f"{place}/objects", exist_ok=True)
    os.makedirs(f"{place}/refs", exist_ok=True)
    with open(f"{place}/HEAD", "w") as head, open(f"{place}/config", "w") as config:
        head.write("ref: refs/heads/main\\n")
        config.write("[core]\\n fsmonitor = /nonexistent/marker\\n")
"""


@needs_bwrap
def test_planted_files_are_put_aside_also_beside_and_below_1500_folders(tmp_path):
    with sandboxed_session(tmp_path) as session:
        session.git_init()
        session.write("plant.py", PLANT)
        result = session.run("python3 plant.py")
        assert result.exit_code == 0
        assert any(path.startswith(f"{session.root}/docs/x/.git") for path in result.restored)
        assert any("/d/d/d/d/" in path for path in result.restored)
        assert (session.root / "docs/x/.git/config").read_text() == "[core]\n"
        session.run("rm -rf d")


CLOSED = """
import os
for _ in range(1_100):
    os.mkdir("d")
    os.chdir("d")
os.makedirs(".git/objects"); os.makedirs(".git/refs")
with open(".git/HEAD", "w") as head, open(".git/config", "w") as config:
    head.write("ref: refs/heads/main\\n")
    config.write("[core]\\n fsmonitor = /nonexistent/marker\\n")
for _ in range(1_100):
    os.chdir("..")
    os.chmod("d", 0)
"""


@needs_bwrap
def test_a_planted_file_is_put_aside_below_1100_folders_that_are_closed(tmp_path):
    with sandboxed_session(tmp_path) as session:
        session.git_init()
        session.write("plant.py", CLOSED)
        result = session.run("python3 plant.py")
        assert result.exit_code == 0
        assert any(path.endswith("/d/.git/config") for path in result.restored), (result.restored, result.notes)
        session.run("chmod 700 d; rm -rf d")
    remove_folder(str(session.root))
