"""Neuron communities: capture, activation pattern graphs, communities, entropy, and honest statistics.

Names are imported on first use, so that `import nbutils` is quick and metrics on arrays never load PyTorch. A name that
needs a package of an extra says which one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from nbutils.support import machine
from nbutils.support.needs import needed_for

machine.start_portable()  # before anything loads NumPy or PyTorch

_WHERE = {
    "activations": ("activation_histogram", "class_means", "effective_rank", "firing", "participation_ratio"),
    "cofiring": ("cofiring_counts",),
    "communities": (
        "Communities",
        "consensus_partition",
        "detect_communities",
        "modularity",
        "well_defined_communities",
    ),
    "counter": ("CofiringCounter",),
    "entropy": (
        "active_entropy",
        "binned_entropy",
        "block_entropy",
        "class_conditional_entropy",
        "class_selectivity",
        "dead_share",
        "firing_entropy",
        "mutual_information",
        "pattern_entropy",
        "total_correlation",
        "unique_share",
    ),
    "graphs": (
        "activation_pattern_graph",
        "disparity_graph",
        "graph_from_counts",
        "graph_from_pairs",
        "graph_in_blocks",
        "layered_graph",
        "pearson_graph",
        "phi_graph",
        "ppmi_graph",
        "to_networkx",
        "within_layer_graph",
    ),
    "capturing.hooks": ("capture", "capture_activations"),
    "capturing.proposals": ("propose_layers",),
    "measures": (
        "class_cells",
        "measure_communities",
        "measure_entropies",
        "measure_active",
        "measure_matched",
        "measure_nulls",
        "MeasureSpec",
    ),
    "nulls": ("circular_shift_null", "within_class_null"),
    "paper": ("paper_graph", "released_entropy", "released_graph"),
    "representations": (
        "layer_spread",
        "linear_probe",
        "manifold_geometry",
        "Manifolds",
        "neural_collapse",
        "neuron_spread",
        "subclass_selectivity",
        "subclass_silhouette",
    ),
    "series": (
        "correlation_test",
        "detrended_correlation",
        "difference_correlation",
        "effective_sample_size",
        "left_out_rise",
        "partial_correlation",
        "saturating_curve",
        "turning_point",
        "when_reached",
    ),
    "stats": ("between_conditions", "bootstrap_interval", "correlation", "holm", "session_permutation", "sign_flip"),
    "tracking": (
        "against_chance",
        "selective_for",
        "between_searches",
        "class_agreement",
        "community_events",
        "compare_partitions",
        "flexibility",
        "track_communities",
    ),
    "watch": ("count_cofiring", "Watch"),
    "support.devices": ("resolve_device",),
    "drawing.display": ("callout", "figure_style", "fold", "interval_text", "say", "show", "show_table"),
    "support.machine": ("is_portable",),
    "evaluation.added": ("Added", "added_variance"),
    "evaluation.ranking": (
        "accuracy_noise",
        "conditional_information",
        "granulated_kendall",
        "kendall",
        "sign_errors",
    ),
    "evaluation.reliability": (
        "half_probe_reliability",
        "intraclass_correlation",
        "Reliability",
        "spearman_brown",
    ),
    "evaluation.words": (
        "cluster_correlation",
        "equivalence_test",
        "Estimate",
        "judge",
        "residual_correlation",
        "t_interval",
        "two_way_residuals",
        "WORDS",
    ),
    "data.datasets": ("balanced_indices", "Dataset", "load_dataset", "probe_indices"),
    "data.datasheets": ("brightness_table", "label_conditions", "read_datasheet", "simple_accuracies"),
    "runs.distilled": ("prediction_tree", "PredictionTree", "soft_tree", "SoftTree"),
    "runs.masks": ("class_masks", "ClassMasks"),
    "runs.models": ("build_model",),
    "runs.run": ("Run", "run_once", "RunSpec"),
    "runs.training": ("train", "TrainingSettings"),
    "runs.weights": ("linear_regions", "normalised_margins", "path_norm", "regions_between", "spectral_norms"),
    "study.archive": ("read_archive", "REFERENCE", "reference_tasks", "write_archive"),
    "study.comparisons": ("between_run_table", "naive_table"),
    "study.hypotheses": ("collect_evidence", "Evidence", "evidence_table", "is_prespecified", "RULES", "verdict"),
    "study.measure_run": ("measure_run", "partitions_of"),
    "study.results": ("CONDITIONS", "NOISE_LEVELS", "Results"),
    "study.specifications": ("evaluate", "evaluate_all", "Specification"),
    "study.study": ("Study",),
    "sweeps.measurements": ("record",),
    "own.measure": ("measure", "Measured"),
    "pages.alluvial": ("alluvial",),
    "pages.evolution": (
        "community_selectivity",
        "early_prediction",
        "event_rates",
        "search_alone",
        "settling",
        "shuffled_classes",
    ),
    "pages.memorising": ("clock_table", "long_runs", "matched_table", "random_networks", "turning_table"),
    "pages.page": ("open_page",),
    "pages.reanalysis": ("read_series",),
    "pages.reconstruction": (
        "entropy_series",
        "modularity_panels",
        "published_panels",
        "shuffle_table",
        "switch_table",
        "switch_words",
        "switched",
    ),
    "pages.robustness": (
        "control_outcomes",
        "perturbations",
        "SCENARIOS",
        "simulated_study",
    ),
    "pages.specification_curve": (
        "choice_effects",
        "curve_test",
        "grid_values",
        "null_effects",
        "readings",
        "specification_curve",
        "specification_table",
    ),
}
EXPORTS = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(EXPORTS)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in EXPORTS:
        with needed_for(f"nbutils.{name}"):
            return getattr(import_module(f"nbutils.{EXPORTS[name]}"), name)
    raise AttributeError(f"nbutils has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
