"""The main job: data, models, explainers and metrics become a run."""
