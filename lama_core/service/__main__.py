"""The scoring process: `python -m lama_core.service`, started by `process.ScoringProcess`."""

from lama_core.service.process import serve

serve()
