"""`python -m lama_core.models.hf.render_chats`: render chats with their templates.

Reads a JSON object from each line of the standard input: `template`, `messages` and `special`
(special tokens by name). Writes one for each: `text`, or `error` with the reason. The template is
untrusted code, so this process has a limit of memory, and of CPU time for each chat.
"""

import json
import signal
import sys
from importlib import import_module
from typing import Any

from lama_core.process_limits import limit_cpu, limit_memory

CPU_SECONDS = 2
MEMORY = 1 << 30  # bytes
LONGEST = 1 << 20  # characters
LONGEST_REASON = 160  # characters


def render(template: str, messages: list[dict[str, str]], special: dict[str, Any]) -> str:
    """Return a chat as text. Raises whatever the template raises; ValueError for a useless text."""
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered: Any = render_jinja_template(
        conversations=[messages], chat_template=template, add_generation_prompt=True, **special
    )
    text = str(rendered[0][0])
    if not text.strip():
        raise ValueError("it renders an empty text")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("it renders half of a character (a lone surrogate)")
    if len(text) > LONGEST:
        raise ValueError(f"it renders {len(text):,} characters; the limit is {LONGEST:,}")
    return text


def answer(line: str) -> dict[str, str]:
    """Return the answer to one line."""
    try:
        return {"text": render(**json.loads(line))}
    except MemoryError:
        return {"error": f"it needs more than {MEMORY >> 30} GB of memory"}
    except ValueError as error:
        return {"error": _first_line(str(error))}
    except Exception as error:  # noqa: BLE001 - a template can raise anything
        return {"error": _first_line(f"{type(error).__name__}: {error}")}


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0][:LONGEST_REASON]


def main() -> None:
    """Answer each line until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the process that asks
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints isn't an answer
    limit_memory(MEMORY)
    import_module("transformers.utils.chat_template_utils")  # takes longer than any chat may
    for line in sys.stdin:
        limit_cpu(CPU_SECONDS)
        print(json.dumps(answer(line)), file=answers, flush=True)


if __name__ == "__main__":
    main()
