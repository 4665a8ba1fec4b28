"""Headless Chromium, driven over its DevTools socket: no driver to install, only the browser."""

import asyncio
import itertools
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from lab.waiting import eventually

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
ALONE = ["--disable-background-networking", "--disable-component-update", "--no-proxy-server"]
WITHIN_S = 30


class Page:
    """One tab."""

    def __init__(self, socket: ClientConnection, session: str) -> None:
        self._socket, self._session = socket, session
        self._numbers = itertools.count(10)
        self.complaints: list[str] = []

    async def call(self, method: str, **params: Any) -> Any:
        """One DevTools command; what the console complains of meanwhile is kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params, "sessionId": self._session}
        await self._socket.send(json.dumps(message))
        while True:
            async with asyncio.timeout(WITHIN_S):
                told = json.loads(await self._socket.recv())
            if told.get("method") == "Log.entryAdded":
                self.complaints.append(told["params"]["entry"]["text"])
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]

    async def go(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def evaluate(self, script: str) -> Any:
        result = await self.call("Runtime.evaluate", expression=script, userGesture=True, awaitPromise=True)
        return result["result"].get("value")

    async def until(self, script: str) -> Any:
        """Wait until a script gives something truthy, over navigations."""

        async def look() -> Any:
            try:
                return await self.evaluate(script)
            except AssertionError:  # between two documents
                return None

        return await eventually(look, script, within_s=WITHIN_S)

    async def press(self, *keys: str) -> None:
        """Keys as a person types them: text, or Tab and Enter."""
        for key in keys:
            code = {"Tab": 9, "Enter": 13}.get(key)
            if code is None:
                await self.call("Input.insertText", text=key)
                continue
            text = {"text": "\r"} if key == "Enter" else {}
            for kind in ("keyDown", "keyUp"):
                await self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Page]:
    """A fresh browser with one tab the size of a phone."""
    assert PROGRAM is not None
    command = [PROGRAM, *OPTIONS, *ALONE, "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port_file = folder / "DevToolsActivePort"

        async def ready() -> list[str] | None:
            lines = port_file.read_text().splitlines() if port_file.exists() else []
            return lines if len(lines) == 2 else None

        port, path = await eventually(ready, "chromium listens", within_s=WITHIN_S)
        async with connect(f"ws://127.0.0.1:{port}{path}", proxy=None, max_size=2**24) as socket:
            yield await _tab(socket)
    finally:
        process.kill()
        process.wait()


async def _tab(socket: ClientConnection) -> Page:
    async def ask(number: int, method: str, **params: Any) -> Any:
        await socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(await socket.recv())
            if told.get("id") == number:
                return told["result"]

    target = await ask(1, "Target.createTarget", url="about:blank")
    attached = await ask(2, "Target.attachToTarget", targetId=target["targetId"], flatten=True)
    page = Page(socket, attached["sessionId"])
    await page.call("Log.enable")
    await page.call("Page.enable")
    await page.call("Emulation.setDeviceMetricsOverride", width=375, height=740, deviceScaleFactor=1, mobile=True)
    return page
