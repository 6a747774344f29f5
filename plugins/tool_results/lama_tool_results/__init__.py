"""Results of other tools as runs, and runs as files for other tools."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="tool_results",
    about="Results of lm-pub-quiz, lm-evaluation-harness, LAMA, Inspect, HELM and OpenCompass.",
    kinds={"imported": "lama_tool_results.spec:IMPORTED_RUNS"},
    imports={"import_run": "lama_tool_results.importing:import_run"},
    functions={"export_run": "lama_tool_results.exporting:export_run"},
    commands={
        "runs export": "lama_tool_results.run_commands:export_command",
        "runs import": "lama_tool_results.run_commands:import_command",
    },
    file_forms={"results of models": "lama_tool_results.import_form:FORM"},
    help={
        "runs export": "Write the answers of a run to files for other tools.",
        "runs import": "Open results that another tool made as runs.",
    },
    result_formats={  # in the order in which they are recognised
        "lm-pub-quiz": "lama_tool_results.lm_pub_quiz:LM_PUB_QUIZ",
        "lm-evaluation-harness": "lama_tool_results.lm_evaluation_harness:HARNESS",
        "lama": "lama_tool_results.lama_scripts:LAMA_SCRIPTS",
        "inspect": "lama_tool_results.inspect_logs:INSPECT",
        "helm": "lama_tool_results.helm:HELM",
        "opencompass": "lama_tool_results.opencompass:OPENCOMPASS",
    },
)
