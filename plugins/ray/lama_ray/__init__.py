"""Runs on a Ray cluster, and parts of runs at an address that all workers reach."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="ray",
    about="Runs on a Ray cluster; parts of runs at any address that fsspec knows.",
    executors={"ray": "lama_ray.executor:make_executor"},
    stores={"*": "lama_ray.store:Address"},
)
