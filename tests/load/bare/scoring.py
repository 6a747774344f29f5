"""The second process of the smallest app: answers each line of its input with a line."""

import json
import sys
from html import escape

import lama_core as lama

N_WORDS = 5

for line in sys.stdin:
    text, context, models = json.loads(line)
    found = lama.fill(text, models=models, context=context or None, top_k=N_WORDS)
    cells = found.map(lambda value: escape(str(value))).to_numpy()
    rows = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in cells)
    print(json.dumps(f"<table>{rows}</table>"), flush=True)
