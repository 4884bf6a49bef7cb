"""The report in a real browser: safe, readable, usable by keyboard, on a phone, in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veracity
from conftest import words
from made_pictures import Corner, made_picture_run, made_pictures
from made_run import ATTACK, BREAKOUT, GIVES_NGRAMS, QUALITY, made_run
from veracity.core.examples import Dataset, Example
from veracity.core.truths import WordSets
from veracity.experiments.dryrun_plan import plan_dryrun
from veracity.experiments.dryrun_record import DryRun
from veracity.reports.dryrun import write_dryrun
from veracity.reports.explanations import Explanation, write_explanations
from veracity.reports.html import write_report
from veracity.reports.suspects import write_suspects
from veracity.reports.truths import write_words
from veracity.results.truths import word_view
from veracity.suspicion.record import Effect, Suspect, SuspectExample, Suspects

CHROMIUM = Path("/usr/bin/chromium")
if not CHROMIUM.exists():
    pytest.skip("needs /usr/bin/chromium: `make` installs it", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Dialog, Page, expect  # noqa: E402

SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

# Every visible text against the colours painted behind it, as WCAG 2 measures contrast.
LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  const paint = (colour) => { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); };
  const light = () => {
    const part = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = [...brush.getImageData(0, 0, 1, 1).data].map((c) => part(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !node.checkVisibility()) continue;
    if (node.closest(".sr, title, desc, script, option")) continue;
    const chain = [];
    for (let n = node; n; n = n.parentElement) chain.unshift(n);
    for (const n of chain) paint(getComputedStyle(n).backgroundColor);
    const behind = light();
    const style = getComputedStyle(node);
    paint(node instanceof SVGElement ? style.fill : style.color);
    const before = light();
    const ratio = (Math.max(before, behind) + 0.05) / (Math.min(before, behind) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push([node.outerHTML.slice(0, 120), ratio]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    return write_report(made_run(folder, size=30, long=1000, methods=(*QUALITY, GIVES_NGRAMS)))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = made_run(
        tmp_path_factory.mktemp("runs") / "run",
        name=BREAKOUT,
        labels=(ATTACK, BREAKOUT),
        models=[ATTACK, "{{ 7*7 }}"],
        methods=["random_scores", ATTACK, BREAKOUT, "a" * 300, GIVES_NGRAMS],
        size=6,
        long=0,
    )
    return write_report(run)


def opened(browser: Browser, path: Path, *, width: int = 1280, scheme: Any = "light") -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(path.as_uri())
    return page


def complaints(browser: Browser, path: Path) -> list[str]:
    """What a page writes to the console, raises or asks for, beside itself."""
    page = browser.new_page()
    seen: list[str] = []
    page.on("console", lambda m: seen.append(f"console {m.text}"))
    page.on("pageerror", lambda e: seen.append(f"error {e}"))
    page.on("request", lambda r: seen.append(r.url))
    page.goto(path.as_uri())
    page.close()
    return [one for one in seen if one != path.as_uri()]


def labels_of_cards(page: Page) -> list[str]:
    return page.locator(".card h3").all_inner_texts()


def test_a_hostile_report_runs_nothing_and_asks_for_nothing(
    browser: Browser, hostile: Path
) -> None:
    page = browser.new_page()
    seen: list[str] = []

    def refuse(dialog: Dialog) -> None:
        seen.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    page.on("console", lambda m: seen.append(f"console {m.text}"))
    page.on("pageerror", lambda e: seen.append(f"error {e}"))
    page.on("request", lambda r: seen.append(r.url))
    page.goto(hostile.as_uri())
    page.locator("#f-model").select_option("")
    page.locator(".card .w").first.hover()
    page.locator("[data-turn='1']").first.click()
    assert seen == [hostile.as_uri()]
    assert page.locator("img, iframe, object, embed").count() == 0
    assert page.locator("script").count() == 2
    text = page.locator("body").inner_text()
    assert ATTACK in text
    assert "{{ 7*7 }}" in text
    page.close()


def test_the_policy_stops_what_might_get_in(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    bad = '<img src="x" onerror="hit = 1"><button id="bad" onclick="hit = 2">x</button>'
    page.evaluate("(bad) => document.body.insertAdjacentHTML('beforeend', bad)", bad)
    page.locator("#bad").click()
    assert page.evaluate("window.hit") is None
    page.context.close()


@pytest.mark.parametrize("which", ["report", "hostile"])
def test_a_phone_never_scrolls_sideways(
    browser: Browser, which: str, request: pytest.FixtureRequest
) -> None:
    page = opened(browser, request.getfixturevalue(which), width=360)
    page.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser: Browser, report: Path, scheme: str) -> None:
    page = opened(browser, report, scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true; })")
    assert page.locator(".w.supports").count() > 50
    assert page.locator(".w.opposes").count() > 50
    assert page.evaluate(LOW_CONTRAST) == []
    page.context.close()


def test_dark_and_light_follow_the_system_until_one_is_chosen(
    browser: Browser, report: Path
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page = opened(browser, report, scheme="dark")
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    assert dark != light
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(ground) == dark
    page.reload()
    assert page.evaluate(ground) == dark
    page.context.close()


def test_sentences_are_filtered_by_keyboard(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    status = page.locator("#found")
    expect(status).to_have_text("Sentences 1–10 of 37")
    page.locator("#f-right").focus()
    page.keyboard.press("w")
    expect(page.locator("#f-right")).to_have_value("wrong")
    assert page.locator(".card").count() == page.locator(".card .wrong").count() > 0
    page.keyboard.press("Home")
    expect(page.locator("#f-right")).to_have_value("")
    page.locator("#f-search").focus()
    page.keyboard.type("电影")
    expect(status).to_have_text("Sentences 1–1 of 1")
    assert page.locator(".card .said").first.inner_text() == "这部电影真好看，演员也很出色。"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    rows = page.locator(".card .row").count()
    page.keyboard.press("Space")
    assert page.locator(".card .row").count() == rows - 1
    expect(page.locator("#f-count")).to_have_text("6 of 7")
    page.locator("#f-search").fill("no such words")
    expect(status).to_have_text("No sentence fits these filters")
    page.context.close()


def test_agreement_filter_and_order(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    page.locator("#f-agree").select_option("disagree")
    assert "methods disagree" in page.locator(".card header").first.inner_text()
    page.locator("#f-agree").select_option("")
    page.locator("#f-order").select_option("id")
    assert labels_of_cards(page)[:2] == ["review-000", "review-001"]
    page.context.close()


def test_pages_are_turned_by_keyboard(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    first = labels_of_cards(page)
    following = page.locator("[data-turn='1']").first
    following.focus()
    page.keyboard.press("Enter")
    assert not set(first) & set(labels_of_cards(page))
    expect(page.locator("#found")).to_have_text("Sentences 11–20 of 37")
    for _ in range(5):
        page.keyboard.press("Space")
    expect(page.locator("#found")).to_have_text("Sentences 31–37 of 37")
    expect(following).to_be_focused()
    expect(following).to_have_attribute("aria-disabled", "true")
    page.context.close()


def test_arrow_keys_read_the_numbers(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    page.locator(".card .w").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    word = page.locator(".card").first.locator(".row").nth(1).locator(".w").nth(1)
    expect(word).to_be_focused()
    tip = page.locator("#tip")
    expect(tip).to_contain_text("rank")
    expect(page.locator("#spoken")).to_have_text(tip.inner_text())
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    assert page.locator(".card").first.locator("[tabindex='0']").count() == 1
    page.context.close()


def test_a_methods_own_ngrams_have_lines_and_are_listed(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    number = page.evaluate(
        "name => JSON.parse(document.getElementById('sentence-data').textContent)"
        ".methods.indexOf(name)",
        GIVES_NGRAMS,
    )
    row = page.locator(f".card .row[data-method='{number}']").first
    said = row.locator(".strongest").inner_text()
    evidence, counter = said.removeprefix("Evidence: ").split(". Counter-evidence: ")
    starts = row.locator(".w.evidence-starts")
    assert starts.count() == row.locator(".w.evidence-ends").count() == evidence.count("“") > 0
    assert row.locator(".w.counter-starts").count() == counter.count("“")
    # a line runs unbroken from the first word to the last, over the gaps between them
    shown = row.locator(".said").inner_text()
    for listed in evidence.split("“")[1:]:
        assert listed.split("”")[0] in shown
    assert starts.first.evaluate("n => getComputedStyle(n).borderTopWidth") == "2px"
    assert row.locator(".w[data-rank]").count() == 0
    others = page.locator(".card").first.locator(f".row:not([data-method='{number}'])")
    assert others.locator(".evidence, .counter").count() == 0
    page.context.close()


def test_links_lead_to_the_sentence(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    page.locator("#f-search").fill("nothing like it")
    link = page.locator(".disputed").nth(1).locator("a").first
    name = link.inner_text()
    link.click()
    sought = page.locator(".card.sought")
    expect(sought).to_be_focused()
    expect(sought.locator("h3")).to_have_text(name)
    expect(page.locator("#f-model")).to_have_value("1")
    page.context.close()


def test_long_texts_open_on_demand(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    page.locator("#f-search").fill("goes")
    assert page.locator(".card .row").first.locator(".w").count() == 120
    page.get_by_role("button", name="Show all 1,000 words").click()
    assert page.locator(".card .row").first.locator(".w").count() == 1000
    expect(page.get_by_role("button", name="Show less")).to_be_focused()
    page.context.close()


def test_the_page_is_built_for_screen_readers(browser: Browser, report: Path) -> None:
    page = opened(browser, report)
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    for landmark in ("banner", "navigation", "main", "contentinfo", "search"):
        assert page.get_by_role(landmark).count() >= 1, landmark
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("svg[role=img]:not(:has(> title))").count() == 0
    unnamed = "s => s.filter((e) => !e.labels.length).length"
    assert page.locator("select, input").evaluate_all(unnamed) == 0
    doubled = """() => {
      const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
      return ids.filter((id, i) => ids.indexOf(id) !== i);
    }"""
    assert page.evaluate(doubled) == []
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.context.close()


# ---- dry runs -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dry_page(rehearsal: Any) -> Path:
    return write_dryrun(rehearsal.record)


def test_a_dry_run_opens_without_a_word_of_complaint(browser: Browser, dry_page: Path) -> None:
    page = browser.new_page()
    seen: list[str] = []
    page.on("console", lambda m: seen.append(f"console {m.text}"))
    page.on("pageerror", lambda e: seen.append(f"error {e}"))
    page.on("request", lambda r: seen.append(r.url))
    page.goto(dry_page.as_uri())
    assert seen == [dry_page.as_uri()]
    # the planted word is marked under every method, and says so when it is asked
    rows = page.locator("#cards .card").first.locator(".row")
    assert rows.count() == 3
    assert rows.locator(".w.planted").count() == 3
    rows.first.locator(".w.planted").hover()
    expect(page.locator("#tip")).to_contain_text("planted")
    page.locator("#f-model").select_option("")
    assert "cue" in page.locator("#cards .card header").first.inner_text()
    page.get_by_role("link", name="report", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("Which explanations to believe")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_dry_run_is_readable_on_a_phone_and_in_the_dark(
    browser: Browser, dry_page: Path, scheme: str
) -> None:
    page = opened(browser, dry_page, width=360, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator(".matrix td.p5, .matrix td.p4").count() > 0
    assert page.evaluate(LOW_CONTRAST) == []
    page.context.close()


# ---- what a model leans on ------------------------------------------------------------------


def _suspect(name: str, kind: str, p: float) -> Suspect:
    return Suspect(
        kind=kind,
        name=name,
        label=BREAKOUT,
        texts=40,
        occurrences=44,
        weight=2.5,
        expected=-0.25,
        weight_excess=0.5,
        label_excess=0.3,
        score=0.3,
        p_value=p,
        consistent=0.997,
        labelled=0.9,
        base=0.5,
        association=12.0,
        topics={"war, soldiers, army": 2.4, ATTACK: -1.0},
        places={"first third": 2.0, "middle": 2.5},
        neighbours={"house": 0.1},
        put_in=Effect(100, 1.8, 0.99, 0.3),
        taken_out=Effect(0, float("nan"), float("nan"), float("nan")),
        examples=(
            SuspectExample(
                id="1",
                words=("a", name, ATTACK),
                scores=(0.1, 2.5, -1.0),
                marked=(1,),
                label=BREAKOUT,
                answer="b",
                cut=(True, True),
            ),
        ),
        also=("the " + name,),
    )


@pytest.fixture(scope="module")
def leaning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = Suspects(
        model=ATTACK,
        data=BREAKOUT,
        labels=(BREAKOUT, "b"),
        method="occlusion",
        vectors="glove",
        texts=400,
        n_candidates=300,
        least_texts=10,
        false_alarms=0.05,
        threshold=0.12,
        accuracy=0.9,
        questions=1000,
        seed=0,
        found=(_suspect("garden", "word", 1e-5), _suspect(ATTACK, "phrase", 0.01)),
        others=(_suspect("a" * 200, "first", 0.4),),
        dots=(("garden", -0.25, 2.5, 40), (ATTACK, 0.2, 0.3, 12)),
    )
    return write_suspects(found, tmp_path_factory.mktemp("suspects") / "suspects.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_suspects_open_without_a_word_of_complaint(
    browser: Browser, leaning: Path, scheme: Any
) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    seen: list[str] = []
    page.on("console", lambda m: seen.append(f"console {m.text}"))
    page.on("pageerror", lambda e: seen.append(f"error {e}"))
    page.on("request", lambda r: seen.append(r.url))
    page.goto(leaning.as_uri())
    assert seen == [leaning.as_uri()]
    assert page.locator("script, img, iframe").count() == 0
    assert page.locator(".verdict").count() == 2
    assert page.locator("article.card").count() == 3
    expect(page.locator("#s1 .w.twin").first).to_have_text("garden")
    assert page.locator("circle.suspect").count() == 1
    assert ATTACK in page.locator("body").inner_text()
    assert page.evaluate(LOW_CONTRAST) == []
    page.locator(".verdict a").first.click()
    expect(page.locator("#s1")).to_be_in_viewport()
    context.close()


def test_suspects_fit_a_phone(browser: Browser, leaning: Path) -> None:
    page = opened(browser, leaning, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.context.close()


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sets of words with all that a page can show of them."""
    sets = WordSets(
        ("negative", "positive"),
        (frozenset({"dull", "fun", ATTACK}), frozenset({"great", "a" * 300})),
        {"dull": (0.4, 0.0), "fun": (0.9, 0.1), ATTACK: (0.5, 0.0), "great": (0.0, 0.8)},
    )
    texts = (("a dull film", 0), ("no fun " + "b" * 300, 0), ("great fun , not dull", 1))
    data = Dataset(
        "texts", sets.labels, tuple(Example(str(i), words(t), y) for i, (t, y) in enumerate(texts))
    )
    lexicon = {"mine": {"fun": 1, "great": 1, "dull": -1}}
    view = word_view(sets, data, lexicons=lexicon, polarity=(-1, 1), least=1)
    return write_words(view, tmp_path_factory.mktemp("words") / "words.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sets_of_words_are_readable_and_sort(browser: Browser, wordy: Path, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    seen: list[str] = []
    page.on("console", lambda m: seen.append(f"console {m.text}"))
    page.on("pageerror", lambda e: seen.append(f"error {e}"))
    page.on("request", lambda r: seen.append(r.url))
    page.goto(wordy.as_uri())
    assert seen == [wordy.as_uri()]
    assert page.locator("img, iframe").count() == 0
    assert page.locator(".cloud li").count() == 5
    size = "node => parseFloat(getComputedStyle(node).fontSize)"
    fun, dull = (page.locator(".cloud li", has_text=w).evaluate(size) for w in ("fun", "dull"))
    assert fun > 1.5 * dull
    assert page.evaluate(LOW_CONTRAST) == []
    first = page.locator("table[data-sortable] tbody th").first
    heading = page.get_by_role("columnheader", name="Score")
    heading.get_by_role("button").click()
    expect(first).to_have_text("fun")
    expect(heading).to_have_attribute("aria-sort", "descending")
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    context.close()


def test_sets_of_words_fit_a_phone(browser: Browser, wordy: Path) -> None:
    page = opened(browser, wordy, width=360)
    page.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.context.close()


def test_pictures_are_switched_by_keyboard_and_seen_without_script(
    browser: Browser, tmp_path: Path
) -> None:
    path = write_report(made_picture_run(tmp_path / "run"))
    page = opened(browser, path, width=360, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.locator(".card").count() == 10
    photo, layer = page.locator(".with-map .photo").first, page.locator(".with-map .map").first
    shown = "(node) => getComputedStyle(node).visibility"
    assert [photo.evaluate(shown), layer.evaluate(shown)] == ["visible", "visible"]
    page.locator("#view-overlay").focus()
    page.keyboard.press("ArrowRight")
    assert [photo.evaluate(shown), layer.evaluate(shown)] == ["hidden", "visible"]
    page.keyboard.press("ArrowRight")
    assert [photo.evaluate(shown), layer.evaluate(shown)] == ["visible", "hidden"]
    assert page.evaluate(LOW_CONTRAST) == []
    page.context.close()
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(path.as_uri())
    assert plain.locator(".card").count() == 12
    assert plain.locator(".with-map .map").first.is_visible()
    context.close()


# ---- every page -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(
    report: Path, dry_page: Path, leaning: Path, wordy: Path, tmp_path_factory: Any
) -> dict[str, Path]:
    """A page of each kind, with something to show or with nothing."""
    place = tmp_path_factory.mktemp("pages")
    labels = Corner.labels
    picture = made_pictures(1).examples[0].input
    shown = {
        "texts": veracity.explain(_short, "a text of some words", "occlusion"),
        "pictures": veracity.explain(Corner(), picture, "occlusion"),
    }
    explained = {
        f"explained {name}": write_explanations(
            [Explanation("one", a, np.array([0.2, 0.8]), labels) for a in found],
            place / f"{name}.html",
            model="m",
        )
        for name, found in shown.items()
    }
    unscored = {
        f"unscored {name}": write_dryrun(
            DryRun.start(place / name, plan_dryrun(model, data, out=place / name).config())
        )
        for name, model, data in (
            ("pictures", "picture_cnn", "made_shapes(n=60, side=16)"),
            ("texts", "text_cnn", "made_reviews(n=60)"),
        )
    }
    pictured = write_report(made_picture_run(place / "run"))
    return {
        "audit": report,
        "pictured audit": pictured,
        "dry run": dry_page,
        "suspects": leaning,
        "words": wordy,
        **explained,
        **unscored,
    }


def _short(texts: list[str]) -> Any:
    short = np.array([1 / (1 + len(one.split())) for one in texts])
    return np.stack([1 - short, short], axis=1)


def test_no_page_raises_an_error(browser: Browser, pages: dict[str, Path]) -> None:
    assert {name: complaints(browser, path) for name, path in pages.items()} == {
        name: [] for name in pages
    }


def test_colours_are_chosen_on_pages_of_explanations(
    browser: Browser, pages: dict[str, Path]
) -> None:
    for name in ("explained texts", "explained pictures", "unscored pictures"):
        page = opened(browser, pages[name])
        expect(page.locator("#theme")).to_have_text("Dark colours")
        page.locator("#theme").click()
        expect(page.locator("#theme")).to_have_text("Light colours")
        page.context.close()
