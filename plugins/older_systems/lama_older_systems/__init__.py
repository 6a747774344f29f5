"""The plug-in `older_systems`: ELMo, Transformer-XL, fairseq's fconv and ERNIE."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="older_systems",
    about="ELMo, Transformer-XL, fairseq's fconv and ERNIE, from their original files.",
    backends={
        "elmo": "lama_older_systems.rows:ELMO",
        "transformer-xl": "lama_older_systems.rows:TRANSFORMER_XL",
        "fconv": "lama_older_systems.rows:FCONV",
    },
    releases={
        "ELMo": "lama_older_systems.rows:ELMO_RELEASE",
        "ERNIE (Tsinghua)": "lama_older_systems.rows:ERNIE_RELEASE",
        "fairseq's fconv_lm": "lama_older_systems.rows:FCONV_RELEASE",
        "Transformer-XL": "lama_older_systems.rows:TRANSFORMER_XL_RELEASE",
    },
)
