"""aimock, a mock of many providers: npm package `@copilotkit/aimock`."""

import http.client
import json
import os
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

_PEERS = Path(__file__).resolve().parents[2] / ".peers"
NODE = _PEERS / "bin" / "node"
AIMOCK = _PEERS / "node" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
KEY = "sk-peer-0123456789abcdef"
"""The only key that aimock accepts."""


class Peer:
    """A running aimock. The caller calls `end`."""

    def __init__(self, fixtures: Path, flags: tuple[str, ...]) -> None:
        command = [str(NODE), str(AIMOCK), "-p", "0", "-f", str(fixtures), "--strict", *flags]
        environ = {"PATH": os.environ["PATH"], "AIMOCK_API_KEYS": KEY}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ
        )
        self.said: list[str] = []
        self.base_url = ""
        """Without `/v1`."""
        for line in self._process.stdout:
            self.said.append(line)
            if "listening on " in line:
                self.base_url = line.split("listening on ")[1].strip()
                break
        # Reads the remaining output, so that aimock never blocks on a full pipe.
        self._reader = threading.Thread(target=self._read_away, daemon=True)
        self._reader.start()
        if not self.base_url:
            self.end()
            pytest.fail("aimock did not start:\n" + "".join(self.said), pytrace=False)

    def _read_away(self) -> None:
        self.said.extend(self._process.stdout)

    def journal(self):
        """Requests and their responses, in order."""
        connection = http.client.HTTPConnection(urlsplit(self.base_url).netloc, timeout=60)
        try:
            connection.request("GET", "/__aimock/journal", headers={"authorization": f"Bearer {KEY}"})
            return json.load(connection.getresponse())
        finally:
            connection.close()

    def end(self) -> None:
        """Stop aimock and wait for its end."""
        self._process.terminate()
        self._process.wait(10)
        self._reader.join(10)
        self._process.stdout.close()
