"""Writes docs/models-view.md: the whole text that a model sees in a run of the real agent on a small project.

`python scripts/models_view.py` rewrites the page. `--check` writes nothing and exits with 1 if the page is out of date.
The model is scripted, and the Python of the project is a shell script, so the run is the same on every machine.
"""

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app import named_definitions
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Message, Note, Origin, Text, ToolResults, User, calls_of, text_of
from bradawl.core.permissions import Answer
from bradawl.core.ports import ModelInfo, Prefix, ToolSchema
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.shaping.compaction.digest import digest
from bradawl.shaping.compaction.summary import SYSTEM
from bradawl.testing.fakes import ScriptedApprover
from bradawl.testing.scripted import ScriptedModel

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "models-view.md"
PROJECT = "/projects/shop"
PROMPT = "`Cart.total` ignores the quantity. Fix it."
PLAN_PROMPT = "Now plan how to add discounts."

INTRO = """\
# What the model sees

This page is the whole text that a model gets in one run: the system prompt, the tools, and a result of each tool with
the errors that are usual for it. `make models-view` writes it from a run of the real agent with a scripted model; a
test fails if it is out of date, and if a part grows over its budget (`tests/gates/test_models_view.py`). Each byte of
the first request is sent again with every request of a conversation.
"""

# ------------------------------------------------------------------ the project

_PYTHON = """\
#!/bin/sh
if grep -q 'price \\* item.quantity' shop/cart.py; then
    echo '3 passed in 0.02s'
else
    echo 'E       assert 5 == 10'
    echo 'FAILED tests/test_cart.py::test_total_counts_quantities'
    echo '1 failed, 2 passed in 0.03s'
    exit 1
fi
"""
FILES = {
    "README.md": "# shop\n\nA shop with a cart.\n",
    "pyproject.toml": '[project]\nname = "shop"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "shop/__init__.py": "",
    "shop/item.py": "class Item:\n    def __init__(self, name, price, quantity=1):\n        self.name = name\n"
    "        self.price = price\n        self.quantity = quantity\n",
    "shop/cart.py": '"""The cart."""\n\n\nclass Cart:\n    def __init__(self):\n        self.items = []\n\n'
    "    def add(self, item):\n        self.items.append(item)\n\n    def total(self):\n"
    "        return sum(item.price for item in self.items)\n",
    "shop/prices.py": "".join(f'PRICE_{number} = {number}  # of the article "{number}"\n' for number in range(400)),
    "tests/test_cart.py": "from shop.cart import Cart\nfrom shop.item import Item\n\n\n"
    "def test_total_counts_quantities():\n    cart = Cart()\n    cart.add(Item('pen', 5, 2))\n"
    "    assert cart.total() == 10\n",
    ".venv/bin/python": _PYTHON,
    ".gitignore": ".venv/\n",
}
TEST = ".venv/bin/python -m pytest"

Call = tuple[str, dict[str, Any]]
CALLS: tuple[Call, ...] = (
    ("grep", {"pattern": "total|quantity"}),
    ("grep", {"pattern": "PRICE", "limit": 6}),
    ("grep", {"pattern": "discount", "path": "shop"}),
    ("glob", {"pattern": "**/*.py"}),
    ("glob", {"pattern": "**/*.rs"}),
    ("read_file", {"file_path": "shop/cart.py"}),
    ("read_file", {"file_path": "shop/prices.py", "offset": 10, "limit": 3}),
    ("read_file", {"file_path": "cart.py"}),
    ("bash", {"command": TEST}),
    ("bash", {"command": "cat shop/carts.py"}),
    ("edit_file", {"file_path": "shop/cart.py", "old_string": "item.cost", "new_string": "item.price * item.quantity"}),
    (
        "edit_file",
        {"file_path": "shop/cart.py", "old_string": "item.price", "new_string": "item.price * item.quantity"},
    ),
    ("bash", {"command": TEST}),
    (
        "multi_edit",
        {
            "edits": [
                {"file_path": "README.md", "old_string": "A shop with a cart.", "new_string": "A shop with carts."}
            ]
        },
    ),
    ("write_file", {"file_path": "CHANGES.md", "content": "- Totals count quantities.\n"}),
    ("bash", {"command": "until [ -e stop ]; do sleep 0.05; done; echo stopped", "run_in_background": True}),
    ("bash_output", {"job_id": "job-1"}),
    ("bash_output", {"job_id": "job-9"}),
    ("bash_kill", {"job_id": "job-1"}),
    ("todo_write", {"todos": [{"content": "Describe the change", "status": "in_progress"}]}),
    ("web_fetch", {"url": "http://127.0.0.1:PORT/discounts"}),
    ("ask_user", {"question": "Shall discounts be part of it?", "options": ["Yes", "No"]}),
    ("agent", {"prompt": "Which files use Item?", "kind": "explore"}),
    ("grep", {"pattern": "("}),
    ("grep", {"path": "shop"}),
    ("search", {"pattern": "x"}),
)
ROOM_OF_DIGEST = 3_000
"""Tokens; enough for all, so that the page does not depend on the length of a path."""
SUMMARY = """\
Goal and state
- `Cart.total` now counts the quantity; tests/test_cart.py passes (3 passed).

Decisions
- Discounts are planned as an attribute of `Cart`, not of `Item`.

Next
- Carry out the approved plan.
"""
SUB_AGENT = {"agent": "shop/cart.py and tests/test_cart.py use Item."}
PLAN_CALLS: tuple[Call, ...] = (
    ("write_file", {"file_path": "x.py", "content": ""}),
    ("exit_plan", {"plan": "Add `discount` to `Cart.total`."}),
)
WEB_PAGE = b"<html><head><title>Discounts</title></head><body><h1>Discounts</h1><p>Ten percent.</p></body></html>"


class _Web(BaseHTTPRequestHandler):
    """Answers every request with the same page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(WEB_PAGE)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


@contextlib.contextmanager
def web_server() -> Iterator[int]:
    """The port of a web server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# ------------------------------------------------------------------ the run


def script(port: int) -> list[dict[str, Any]]:
    """The replies of the model: a call in each, and what the sub-agent says."""
    replies: list[dict[str, Any]] = []
    for calls in (CALLS, PLAN_CALLS):
        for name, arguments in calls:
            text = json.dumps(arguments).replace("PORT", str(port))
            replies.append({"tool_calls": [{"id": f"c{len(replies)}", "name": name, "arguments": json.loads(text)}]})
            if name in SUB_AGENT:
                replies.append({"text": SUB_AGENT[name]})
        replies.append({"text": "Done."})
    return [*replies, {"text": SUMMARY}]


class Seen:
    """What the model saw in a run, with the names of this machine replaced."""

    def __init__(
        self,
        model: ScriptedModel,
        messages: list[Message],
        compactions: tuple[Message, ...],
        replacements: dict[str, str],
    ) -> None:
        """`compactions`: a request for a summary, the first message with it, and a summary without a model."""
        self._replacements = replacements
        self.compactions = compactions
        prefix = model.prefixes[0]
        self.system = self.neutral(prefix.system)
        self.tools = prefix.tools
        self.messages = messages
        self.first_request = self.neutral(_encoded(Prefix(prefix.system, prefix.tools)))

    def neutral(self, text: str) -> str:
        """The text as on any machine."""
        for found, instead in self._replacements.items():
            text = text.replace(found, instead)
        text = re.sub(r"system: \w+ \w+,", "system: Linux x86_64,", text)
        text = re.sub(r"/data/projects/[^/]+/blobs/[0-9a-f]{64}", "/data/projects/shop/blobs/0123...", text)
        text = re.sub(
            r"/data/projects/[^/]+/records/\w+/[0-9a-f]{64}", "/data/projects/shop/records/01.../0123...", text
        )
        text = re.sub(r"(?m) \[[0-9a-z]{6}\]$", " [k3x9q2]", text)
        return re.sub(r"\b(for|after) [\d.]+ s\b", r"\1 1 s", text)


def _encoded(prefix: Prefix) -> str:
    encoder = OpenAIChat().encoder(prefix, ModelInfo(Origin("openai_chat", "openai", "model")))
    encoder.append(User((Text(PROMPT),)))
    return b"".join(encoder.body(RequestParams())).decode()


async def run(top: Path, port: int) -> Seen:
    """Let the agent work on the project below `top`."""
    project, home = top / "shop", top / "home"
    for number, (name, text) in enumerate(FILES.items()):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (number, number))  # the order of what glob finds
    (project / ".venv/bin/python").chmod(0o755)
    home.mkdir()
    settings = Settings(
        model=ModelSettings("scripted", str(top / "none.json")),
        cwd=str(project),
        home=str(home / "data"),
        user_home=str(home),
        environment={"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        permission_mode="accept-edits",
        sandbox="off",
        undo=False,
        user_tools=False,
        allow_private_fetch=True,
    )
    model = ScriptedModel(json.dumps(script(port)).encode())
    yes = "Yes, and ask me before each change"
    approver = ScriptedApprover([Answer(allowed=True, by="user")] * len(CALLS), ["No", yes])
    agent = build_agent(settings, approver, model=model)
    try:
        async with agent.open() as session:
            await session.run(PROMPT)
            session.choose_mode("plan")
            await session.run(PLAN_PROMPT)
            messages = list(session.transcript.messages)
            await session.compact("the discount")
            request, with_model = model.requests[-1][0], session.transcript.messages[0]
            compactions = (request, with_model, User((Text(digest(messages, ROOM_OF_DIGEST)),)))
    finally:
        await agent.aclose()
    return Seen(model, messages, compactions, {str(project): PROJECT, str(home): "/people/you", f":{port}": ":8000"})


def seen() -> Seen:
    """A run in a temporary folder. Nothing is left out for lack of time."""
    named_definitions.TIME_S = 60
    with tempfile.TemporaryDirectory() as folder, web_server() as port:
        return asyncio.run(run(Path(os.path.realpath(folder)), port))


# ------------------------------------------------------------------ the page


def table(found: Seen) -> str:
    """The sizes of all parts of the first request."""
    rules, _, environment = found.system.partition("<environment>")
    rows = [("system prompt: rules", len(rules.encode()))]
    rows.append(("system prompt: environment", len(f"<environment>{environment}".encode())))
    rows += [(f"tool `{tool.name}`", len(_schema(tool).encode())) for tool in found.tools]
    rows.append(("all tools", sum(size for name, size in rows if name.startswith("tool "))))
    rows.append(("first request, as OpenAI Chat Completions", len(found.first_request.encode())))
    lines = [f"| {name} | {size:,} |" for name, size in rows]
    return "\n".join(["| part | bytes |", "|---|---|", *lines])


def _schema(tool: ToolSchema) -> str:
    return f"{tool.name}\n{tool.description}\n{bytes(tool.parameters).decode()}"


def _block(text: str) -> str:
    return f"````text\n{text}\n````"


def conversation(found: Seen) -> Iterator[str]:
    """Prompts, calls and their results in order."""
    for message in found.messages:
        match message:
            case User():
                yield _block(found.neutral("\n".join([text_of(message.parts), *map(_note, message.notes)])))
            case Assistant():
                for call in calls_of(message):
                    yield f"**{call.name}** `{found.neutral(call.raw_arguments)}`"
            case ToolResults():
                for result in message.results:
                    text = found.neutral(text_of(result.parts))
                    error = "An error:\n\n" if result.is_error else ""
                    yield error + _block("\n".join([text, *map(_note, message.notes)]))


def _note(note: Note) -> str:
    return f'<note source="{note.source}">\n{note.text}\n</note>'


def compaction(found: Seen) -> Iterator[str]:
    """A request for a summary, cut, and the conversation after it."""
    request, with_model, without = (found.neutral(_first_text(message)) for message in found.compactions)
    head, _, end = request.partition("</conversation>")
    yield "`/compact the discount` asks the model for a summary, in a conversation of its own:"
    end = re.sub(r"(?s)(plan them again:\n).*?(\n\nWrite)", r"\1bash: .venv/bin/python -m pytest\2", end)
    yield _block(f"{SYSTEM.strip()}\n\n{head[:400]}\n[... cut for this page ...]\n</conversation>{end}")
    yield "The conversation then begins with this message:"
    # How many files fit depends on the length of the temporary folder's name.
    yield _block(with_model.partition("\n<file ")[0] + "\n[files that changed or were read last follow as they are]")
    yield "If the model writes none, it is made of what the agent said, its calls, and telling lines of results:"
    yield _block(without)


def _first_text(message: Message) -> str:
    if not isinstance(message, User):
        raise TypeError("the first message after a compaction is a user's")
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "\n".join((*texts, *map(_note, message.notes)))


def page() -> str:
    """The whole page."""
    found = seen()
    tools = [f"### {tool.name}\n\n{_block(_schema(tool).split(chr(10), 1)[1])}" for tool in found.tools]
    parts = [
        *(INTRO, table(found), "## System prompt", _block(found.system), "## Tools"),
        *("Description and JSON Schema of each, as they are sent.", *tools),
        *("## Prompts, calls and results", *conversation(found)),
        *("## After a compaction", *compaction(found)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def main(check: bool) -> int:
    """Write the page, or with `--check` say that it is out of date."""
    text = page()
    if PAGE.is_file() and PAGE.read_text("utf-8") == text:
        return 0
    if not check:
        PAGE.write_text(text, "utf-8")
    print(f"docs/models-view.md {'is out of date: make models-view' if check else 'written'}")
    return int(check)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
