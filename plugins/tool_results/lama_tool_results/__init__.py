"""Other tools' results, which `runs import` opens as runs; and runs as results of lm-pub-quiz."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="tool_results",
    about="Results of lm-pub-quiz, lm-evaluation-harness, LAMA, Inspect, HELM and OpenCompass.",
    result_formats={  # in the order in which they are recognised
        "lm-pub-quiz": "lama_tool_results.lm_pub_quiz:LM_PUB_QUIZ",
        "lm-evaluation-harness": "lama_tool_results.lm_evaluation_harness:HARNESS",
        "lama": "lama_tool_results.lama_scripts:LAMA_SCRIPTS",
        "inspect": "lama_tool_results.inspect_logs:INSPECT",
        "helm": "lama_tool_results.helm:HELM",
        "opencompass": "lama_tool_results.opencompass:OPENCOMPASS",
    },
    export_formats={"lm-pub-quiz": "lama_tool_results.lm_pub_quiz_export:write_quiz"},
)
