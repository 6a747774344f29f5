"""The plug-in's lessons."""

from pathlib import Path

BELIEFS = Path(__file__).with_name("11-beliefs.toml")
