"""The interpreto package on MiniLM: its perturbation and gradient methods, at its own settings.

What interpreto 0.5.2 asks by default, read in its source: words, batches of four, logits.

- LIME: 100 perturbations, each word masked with probability one half; no text without masks; a
  kernel so wide (0.75 √n on a cosine distance below 1, taken from the hidden words and not from the
  shown ones) that all weigh about the same; least squares.
- Kernel SHAP: 100 perturbations, sizes drawn in proportion to k (n − k), where Shapley's kernel has
  1 / (k (n − k)); equal weights, no constraint that shares add up: not Shapley values in the limit.
- Occlusion: one question per word and one for the whole text.
- Integrated gradients: 10 points by the trapezoid rule, every piece starting from 1e-6, special
  ones too; at each point |gradient × point|, averaged over dimensions: unsigned, no sum to meet.
- SmoothGrad: 10 copies, noise 0.1, |gradient × noisy input| averaged.

A hidden word keeps one [MASK] per piece, ours becomes a single one, so the sentences here are of
words of one piece. Of the five, occlusion alone has one definition: there answers must agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

import setting
from setting import Row
from veracity.core.inputs import FloatArray, Text

SAMPLES = 100
POINTS = 10
OURS = {
    "Lime": setting.LIME.format(samples=SAMPLES, bow=False),
    "KernelShap": setting.KERNEL_SHAP.format(samples=SAMPLES),
    "Occlusion": "occlusion(hiding=mask)",
    "IntegratedGradients": f"integrated_gradients(steps={POINTS}, output=logit)",
    "SmoothGrad": f"smooth_grad(samples={POINTS})",
}


def at_its_settings(quick: bool) -> list[dict[str, Any]]:
    import interpreto
    from interpreto.attributions import InferenceModes

    warnings.simplefilter("ignore")
    threads = setting.all_cores()
    model = setting.model("minilm")
    model.eval()
    texts = _of_single_pieces(model, 2 if quick else 12, up_to=10 if quick else 25)
    targets = setting.predicted(model, texts)
    found = []
    for name, spec in OURS.items():
        # probabilities where ours speaks of probabilities, its own logits for gradients
        gradient = name in ("IntegratedGradients", "SmoothGrad")
        mode = InferenceModes.LOGITS if gradient else InferenceModes.SOFTMAX
        peer = getattr(interpreto, name)(model.model, model.tokenizer, inference_mode=mode)
        torch.manual_seed(setting.SEED)
        with setting.Rows(model.model) as rows:
            peer_s, theirs = setting.timed(lambda: _scores(peer, texts, targets))  # noqa: B023
        case = f"{name}, MiniLM"
        more: dict[str, Any] = {
            "sentences": len(texts),
            "threads": threads,
            "peer_questions": rows.count,
        }
        setting.explain(model, texts[:1], targets[:1], spec)
        with setting.Rows(model.model) as own_rows:
            ours_s, ours = setting.timed(
                lambda: setting.explain(model, texts, targets, spec)  # noqa: B023
            )
        same = name == "Occlusion"
        scores = [a.scores for a in ours]
        more |= {
            "ours_questions": own_rows.count,
            "rank_agreement": setting.rank_agreement(scores, theirs),
        }
        found.append(
            Row(
                case,
                "interpreto",
                ours_s,
                peer_s,
                setting.largest(scores, theirs) if same else None,
                note=f"ours: {spec}" + ("" if same else "; definitions differ, ranks are compared"),
                more=more,
            ).written()
        )
    return found


def _of_single_pieces(model: Any, count: int, up_to: int) -> list[Text]:
    """Sentences whose words are whole pieces: there both libraries hide the same thing."""
    pieces = model.tokenizer.tokenize
    return [
        text
        for text in setting.sentences(2000, up_to=up_to)
        if all(len(pieces(word)) == 1 for word in text.words)
    ][:count]


def _scores(peer: Any, texts: Sequence[Text], targets: Sequence[int]) -> list[FloatArray]:
    found = peer.explain([t.text for t in texts], torch.tensor(targets))
    return [one.attributions.detach().double().numpy().ravel() for one in found]


CASES = {"interpreto, five methods": at_its_settings}
