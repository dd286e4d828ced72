"""Neuron communities: capture, activation pattern graphs, communities, entropy, and honest statistics.

Names are imported on first use, so that `import nbutils` is quick and metrics on arrays never load PyTorch. A name that
needs a package of an extra says which one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from nbutils import portable
from nbutils.needs import needed_for

portable.start()  # before anything loads NumPy or PyTorch

_WHERE = {
    "activations": ("activation_histogram", "class_means", "effective_rank", "firing"),
    "archive": ("read_archive", "write_archive"),
    "answering": ("clarity", "shuffled_classes"),
    "baselines": ("class_selectivity", "dead_share"),
    "blocks": ("graph_in_blocks",),
    "changes": ("event_rates", "search_alone", "settling"),
    "cofiring": ("cofiring_counts",),
    "choices": ("agreement", "choice_effects", "choice_means", "effect_list", "null_effects", "one_step"),
    "clocks": ("clock_table",),
    "communities": ("Communities", "detect_communities", "modularity", "well_defined_communities"),
    "comparisons": ("between_run_table", "naive_table"),
    "controls": ("WORLDS", "control_outcomes", "control_shares", "made_up_study"),
    "consensus": ("consensus_partition",),
    "constructions": ("disparity_graph", "pearson_graph", "phi_graph", "ppmi_graph"),
    "correlations": ("between_conditions", "correlation", "session_permutation"),
    "curves": ("effect_scatter", "sign_shares", "specification_curve", "specification_table"),
    "datasets": ("Dataset", "load_dataset"),
    "datasheets": ("label_conditions", "read_datasheet"),
    "devices": ("resolve_device",),
    "display": ("callout", "fold", "interval_text", "say", "show", "show_table"),
    "entropy": ("binned_entropy", "class_conditional_entropy", "firing_entropy", "pattern_entropy", "unique_share"),
    "graphs": ("activation_pattern_graph", "graph_from_counts", "graph_from_pairs", "to_networkx"),
    "events": ("against_chance", "between_searches", "community_events", "compare_partitions"),
    "evolution": ("answers_to", "flexibility", "match_communities", "partitions_of", "track_communities"),
    "flows": ("alluvial",),
    "foresight": ("early_prediction",),
    "hooks": ("capture", "capture_activations"),
    "evaluations": ("evaluate", "evaluate_all"),
    "evidence": ("RULES", "Evidence", "evidence_table", "is_registered", "verdict"),
    "hypotheses": ("collect_evidence",),
    "information": ("mutual_information", "total_correlation"),
    "layered": ("layered_graph", "within_layer_graph"),
    "living": ("measure_living",),
    "measurements": ("record",),
    "measures": ("MeasureSpec", "measure_communities", "measure_entropies", "measure_nulls", "measure_run"),
    "memorising": ("long_runs", "matched_table", "random_networks", "turning_table"),
    "models": ("build_model",),
    "multiverse": ("curve_test", "grid_values", "readings"),
    "notebook": ("open_page",),
    "nulls": ("circular_shift_null", "within_class_null"),
    "portable": ("is_portable",),
    "published": ("read_series",),
    "quirk_figures": ("entropy_panels", "modularity_panels", "published_panels"),
    "quirks": ("change_table", "shuffle_table", "switch_table", "switch_words", "switched"),
    "reference": ("REFERENCE", "reference_tasks"),
    "replication": ("compare_trainings", "entropy_series", "published_table"),
    "results": ("CONDITIONS", "NOISE_LEVELS", "Results"),
    "reconstruction": ("paper_graph", "released_entropy", "released_graph"),
    "robustness": ("attacks", "survival"),
    "runs": ("Run", "run_once"),
    "sampling": ("balanced_indices", "probe_indices"),
    "series": (
        "correlation_test",
        "detrended_correlation",
        "difference_correlation",
        "effective_sample_size",
        "partial_correlation",
        "saturating_curve",
    ),
    "specifications": ("Specification",),
    "specs": ("RunSpec",),
    "streaming": ("CofiringCounter",),
    "simple_rules": ("brightness_table", "simple_accuracies"),
    "stats": ("bootstrap_interval", "holm", "sign_flip"),
    "study": ("Study",),
    "turning": ("left_out_rise", "turning_point", "when_reached"),
    "watching": ("Watch", "count_cofiring"),
    "training": ("TrainingSettings", "train"),
}
_EXPORTS = {name: module for module, names in _WHERE.items() for name in names}

PUBLIC_MODULES = tuple(_WHERE)
__all__ = sorted(_EXPORTS)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        with needed_for(f"nbutils.{name}"):
            return getattr(import_module(f"nbutils.{_EXPORTS[name]}"), name)
    raise AttributeError(f"nbutils has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
