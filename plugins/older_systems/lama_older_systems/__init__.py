"""The plug-in `older_systems`: ELMo, Transformer-XL, fairseq's fconv and ERNIE."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="older_systems",
    about="ELMo, Transformer-XL, fairseq's fconv and ERNIE, from their original files.",
)
