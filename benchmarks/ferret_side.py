"""What runs inside ferret's own environment: a job on standard input, the answer on the last line.

What ferret 0.4.2 really asks, read in its source, all per piece of the tokeniser and one sentence
at a time, in batches of eight:

- Partition SHAP: shap's PartitionExplainer, at most 500 evaluations, pieces replaced by [MASK],
  probabilities; it draws nothing, so its seed (42) changes nothing.
- LIME: lime with bow=False on the sentence's piece numbers, [CLS] and [SEP] among them;
  min(pieces², 5,000) samples, pieces replaced by [MASK], decoded to a string and read again;
  NumPy's global generator, unseeded.
- Gradient: captum's Saliency of the logit, absolute values summed over dimensions (an L1 norm).
- Gradient × input: captum's InputXGradient of the logit, summed.
- Integrated gradient: captum's, 50 points, from [CLS] [PAD] … [SEP] to the text, logit. Without
  "× input" the mean gradient is summed over dimensions; behind a layer norm that sum is zero, so
  on BERT it is rounding noise.
- Comprehensiveness and sufficiency: the whole text once each, then the top 10 %, …, 100 % of the
  pieces (rounded down, only those with positive scores, repeats left out), deleted, decoded and
  read again; their mean. Tau-LOO: the whole text once more, then each piece deleted, Kendall's tau.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from typing import Any


class Rows:
    """Counts the rows that the model is given."""

    def __init__(self, model: Any) -> None:
        self.count = 0
        model.register_forward_pre_hook(self._seen, with_kwargs=True)

    def _seen(self, _: Any, given: Any, named: Any) -> None:
        first = named["inputs_embeds"] if named.get("input_ids") is None else named["input_ids"]
        self.count += len(first)


def main() -> None:
    import numpy as np
    import torch
    from ferret import Benchmark
    from ferret.evaluators.faithfulness_measures import (
        AOPC_Comprehensiveness_Evaluation,
        AOPC_Sufficiency_Evaluation,
        TauLOO_Evaluation,
    )
    from ferret.explainers.explanation import Explanation
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    model = AutoModelForSequenceClassification.from_pretrained(job["model"]).eval()
    kinds = [AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation]
    if job.get("given") is None:
        kinds.append(TauLOO_Evaluation)
    judges = [kind(model, tokenizer) for kind in kinds]
    bench = Benchmark(model, tokenizer, evaluators=judges)
    rows = Rows(model)
    texts, targets = job["texts"], job["targets"]
    answer: dict[str, Any] = {"pieces": [bench.helper.get_tokens(t) for t in texts]}

    if job.get("given") is None:
        # scores as they are: the L1 norm that it would divide by costs nothing and hides the scale
        np.random.seed(0)
        bench.explain(texts[0], targets[0], show_progress=False)
        answer["methods"] = [e.NAME for e in bench.explainers]
        answer["seconds"], answer["rows"], answer["scores"] = [], [], []
        found: list[list[Any]] = [[] for _ in texts]
        for explainer in bench.explainers:
            rows.count, started = 0, time.perf_counter()
            for i, (text, target) in enumerate(zip(texts, targets, strict=True)):
                found[i].append(explainer(text, target))
            answer["seconds"].append(time.perf_counter() - started)
            answer["rows"].append(rows.count)
        answer["scores"] = [[np.asarray(e.scores).tolist() for e in each] for each in found]
        again = []
        for i in range(job["again"]):
            np.random.seed(1)
            again.append(
                [np.asarray(e(texts[i], targets[i]).scores).tolist() for e in bench.explainers[:2]]
            )
        answer["again"] = again
    else:
        found = [
            [
                Explanation(text, pieces, np.array(scores), str(number), target)
                for number, scores in enumerate(each)
            ]
            for text, pieces, target, each in zip(
                texts, answer["pieces"], targets, job["given"], strict=True
            )
        ]
        bench.evaluate_explanations(found[0][:1], targets[0], show_progress=False)
    rows.count, started = 0, time.perf_counter()
    judged = [
        bench.evaluate_explanations(each, target, show_progress=False)
        for each, target in zip(found, targets, strict=True)
    ]
    answer["evaluation_seconds"] = time.perf_counter() - started
    answer["evaluation_rows"] = rows.count
    answer["evaluations"] = [
        [[float(s.score) for s in one.evaluation_scores] for one in each] for each in judged
    ]
    print(json.dumps(answer))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.suppress(BrokenPipeError):
        main()
