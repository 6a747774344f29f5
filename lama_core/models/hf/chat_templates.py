"""Chat templates: Jinja code in a model's folder that makes one text of a chat.

A template may run for ever, or write gigabytes. So it is rendered in a child process with limits
of time and memory (`render_chats`), which is started by the first chat and serves all later ones.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any, cast

from lama_core.errors import UserError
from lama_core.models.hf.render_chats import CPU_SECONDS
from lama_core.models.protocols import Chat
from lama_core.paths import IMPORT_ROOT

SIGXCPU = getattr(signal, "SIGXCPU", 24)  # ends a process that has used its CPU time
# The process is ended after this wall-clock time, for systems without a limit of CPU time.
SECONDS = 60.0


def stored_template(tokenizer: Any) -> object:
    """Return what a tokenizer has as its chat template: a text, unless its files are damaged.

    If there are several templates, it is the default one. None or empty if there is none.
    """
    stored = getattr(tokenizer, "chat_template", None)
    return stored.get("default") if isinstance(stored, dict) else stored


def render_chat(name: str, tokenizer: Any, chat: Chat) -> str:
    """Return a chat as text, with the beginning of the answer that the template adds.

    Args:
        name: The model's name.
        tokenizer: Its tokenizer, with the chat template and special tokens.
        chat: The messages.

    Raises:
        UserError: If the tokenizer has no chat template, or the template fails or exceeds a limit.
    """
    template = stored_template(tokenizer)
    if not template:
        raise UserError(f"{name} has no chat template: ask with --plain.")
    try:
        return RENDERER.render(template, chat, tokenizer.special_tokens_map)
    except ValueError as error:
        raise UserError(
            f"The chat template of {name} can't be used: {str(error).rstrip('.')}. Ask with "
            '--plain, or in the app with "Continue the text as it is".'
        ) from error


class Renderer:
    """The child process that renders chats; started by the first chat, and again after it ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._owner = 0  # the process that started it: a fork of it must not use its pipes

    def render(self, template: object, chat: Chat, special: Mapping[str, Any]) -> str:
        """Return a chat as text.

        Args:
            template: The template, a text.
            chat: The messages.
            special: The special tokens by name, which the template may use.

        Raises:
            ValueError: If the chat can't be rendered; the message is the reason.
        """
        if not isinstance(template, str):
            raise ValueError(f"it is {str(template)[:40]!r}, not a text")
        request = {
            "template": template,
            "messages": chat.sent(),
            "special": {name: str(token) for name, token in special.items()},
        }
        with self._lock:
            answer = self._ask(json.dumps(request))
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["text"]

    def _ask(self, request: str) -> dict[str, str]:
        child = self._running()
        late, began = threading.Timer(SECONDS, child.kill), time.monotonic()
        late.start()
        try:
            cast(IO[str], child.stdin).write(f"{request}\n")
            cast(IO[str], child.stdin).flush()
            line = cast(IO[str], child.stdout).readline()
        except OSError:  # it ended before it had read the request
            line = ""
        finally:
            late.cancel()
        if line:
            return dict(json.loads(line))
        self._child = None
        if child.wait() == -SIGXCPU or time.monotonic() - began > SECONDS:
            return {"error": f"it takes more than {CPU_SECONDS} seconds"}
        return {"error": f"the process that renders it ended (exit status {child.returncode})"}

    def _running(self) -> subprocess.Popen[str]:
        """Return the process; start it if it isn't running."""
        child = self._child if self._owner == os.getpid() else None
        if child is None or child.poll() is not None:
            child = subprocess.Popen(
                [sys.executable, "-m", "lama_core.models.hf.render_chats"],
                cwd=IMPORT_ROOT,
                # Each thread of numpy's library would need memory of its own.
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",  # what is written is ASCII
            )
            self._child, self._owner = child, os.getpid()
        return child

    def stop(self) -> None:
        """End the process, which waits for another chat."""
        if self._child is not None and self._owner == os.getpid():
            self._child.communicate()
            self._child = None


RENDERER = Renderer()
atexit.register(RENDERER.stop)
