"""The plug-in `entities`: what models believe about one thing."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(name="entities", about="What models believe about a person, place or thing.")
