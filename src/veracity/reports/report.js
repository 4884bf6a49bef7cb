"use strict";
(() => {
  const PER_PAGE = 10;
  const CLIP = 120; // words shown of a long text until all are asked for
  const FAINT = 0.08; // weaker words get no line under them

  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("sentence-data").textContent);
  const state = { page: 0, sought: null, whole: new Set() };
  const drawn = [...document.querySelectorAll("#cards > .card")]; // pictures stand in the page
  const [one, many] = drawn.length ? ["picture", "Pictures"] : ["sentence", "Sentences"];

  // ---- small parts -------------------------------------------------------------------------

  function make(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function figure(value) {
    if (value === null) return "not defined";
    const size = Math.abs(value);
    const text = size !== 0 && (size < 0.001 || size >= 100000) ? size.toExponential(1) : String(Number(size.toPrecision(3)));
    return (value > 0 ? "+" : value < 0 ? "−" : "") + text;
  }

  const label = (i) => (i === null || data.labels[i] === undefined ? "–" : data.labels[i]);
  const labelled = data.labels.at(-1) !== "unlabelled";
  const isRight = (item) => item.said !== null && item.said === item.gold;

  function accord(item) {
    if (item.agreement === null) return "undefined";
    if (item.agreement >= data.agree) return "agree";
    return item.agreement < data.disagree ? "disagree" : "mixed";
  }

  const ACCORDS = { agree: "methods agree", mixed: "methods agree in part", disagree: "methods disagree", undefined: "agreement not defined" };

  // ---- choosing ----------------------------------------------------------------------------

  function chosenMethods() {
    return new Set([...document.querySelectorAll("#f-methods input:checked")].map((box) => Number(box.value)));
  }

  function found() {
    const model = byId("f-model").value;
    const right = byId("f-right").value;
    const agree = byId("f-agree").value;
    const sought = byId("f-search").value.trim().toLowerCase();
    const fits = (item) =>
      (model === "" || item.model === Number(model)) &&
      (right === "" || isRight(item) === (right === "right")) &&
      (agree === "" || accord(item) === agree) &&
      (sought === "" || searchable(item.text).includes(sought));
    return data.items.filter(fits).sort(ORDERS[byId("f-order").value]);
  }

  const texts = new Map();
  function searchable(place) {
    if (!texts.has(place)) {
      const text = data.texts[place];
      texts.set(place, (text.id + "\n" + text.pieces.join("")).toLowerCase());
    }
    return texts.get(place);
  }

  const known = (item, otherwise) => (item.agreement === null ? otherwise : item.agreement);
  const ORDERS = {
    given: (a, b) => a.number - b.number,
    least: (a, b) => known(a, 2) - known(b, 2),
    most: (a, b) => known(b, -2) - known(a, -2),
    id: (a, b) => a.text_id.localeCompare(b.text_id, undefined, { numeric: true }),
  };

  // ---- drawing -----------------------------------------------------------------------------

  function strongest(scores) {
    return scores
      .map((score, i) => [score, i])
      .filter(([score]) => score !== null && score !== 0)
      .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]) || a[1] - b[1])
      .slice(0, 3)
      .map(([, i]) => i);
  }

  const MARKS = ["planted", "decoy"];
  function marked(item, i) {
    const { marks } = data.texts[item.text];
    return MARKS.filter((kind) => (marks[kind] || []).includes(i));
  }

  function wordNode(text, score, i, largest, rank) {
    const node = make("span", "w", text);
    node.dataset.i = i;
    if (score === null || largest === 0) return node;
    const strength = Math.abs(score) / largest;
    if (score !== 0) node.classList.add(score > 0 ? "supports" : "opposes");
    if (strength < FAINT) node.classList.add("faint");
    node.style.setProperty("--s", strength.toFixed(3));
    if (rank >= 0) node.dataset.rank = (score > 0 ? "+" : "−") + (rank + 1);
    return node;
  }

  // words on a method's own n-grams get lines: over them for evidence, dotted below for the rest
  function lines(ngrams) {
    const classes = new Map();
    const add = (place, name) => classes.set(place, (classes.get(place) || new Set()).add(name));
    for (const kind of ["evidence", "counter"]) {
      for (const { words } of ngrams[kind]) {
        for (const i of words) {
          add(i, kind);
          if (words.includes(i - 1)) add(`gap ${i}`, kind);
          else add(i, `${kind}-starts`);
          if (!words.includes(i + 1)) add(i, `${kind}-ends`);
        }
      }
    }
    return (place) => [...(classes.get(place) || [])];
  }

  function spelt(ngram, pieces) {
    const joined = ngram.words.map((i, n) => {
      const gap = n === 0 ? "" : ngram.words[n - 1] === i - 1 ? pieces[2 * i] : " … ";
      return gap + pieces[2 * i + 1];
    });
    const text = joined.length ? `“${joined.join("")}”` : "beyond the words kept";
    return `${text} ${figure(ngram.score)}`;
  }

  function listed(ngrams, pieces) {
    const said = (kind) => ngrams[kind].map((ngram) => spelt(ngram, pieces)).join(", ") || "none";
    return `Evidence: ${said("evidence")}. Counter-evidence: ${said("counter")}`;
  }

  function rowOf(item, method, limit) {
    const { pieces, lang } = data.texts[item.text];
    const scores = item.scores[method];
    const ngrams = item.ngrams[method];
    const top = ngrams ? [] : strongest(scores);
    const marks = lines(ngrams || { evidence: [], counter: [] });
    const largest = scores.reduce((most, score) => Math.max(most, Math.abs(score || 0)), 0);
    const row = make("div", "row");
    row.dataset.method = method;
    row.append(make("code", "method", data.methods[method]));
    const said = make("div", "said");
    said.lang = lang;
    said.dir = "auto";
    const shown = Math.min(limit, scores.length);
    for (let i = 0; i < shown; i += 1) {
      const gap = marks(`gap ${i}`);
      const word = wordNode(pieces[2 * i + 1], scores[i], i, largest, top.indexOf(i));
      word.classList.add(...marks(i), ...marked(item, i));
      said.append(gap.length ? make("span", gap.join(" "), pieces[2 * i]) : pieces[2 * i], word);
    }
    const clipped = shown < scores.length;
    said.append(clipped ? " …" : pieces[2 * scores.length] || "");
    row.append(said);
    if (ngrams) {
      row.append(make("p", "strongest", listed(ngrams, pieces)));
      return row;
    }
    const names = top.map((i) => `${pieces[2 * i + 1]} ${figure(scores[i])}`).join(", ");
    row.append(make("p", clipped ? "strongest" : "sr", names ? `Strongest: ${names}` : "All scores are zero or not defined"));
    return row;
  }

  function headOf(item) {
    const text = data.texts[item.text];
    const head = make("header");
    const title = make("h3", "", text.id);
    title.id = `h${item.number}`;
    head.append(title);
    if (byId("f-model").value === "") head.append(fact(data.grouped_by, data.models[item.model]));
    if (labelled) head.append(fact("true", label(item.gold)));
    const answer = fact("answer", label(item.said));
    if (item.p !== null) answer.append(` ${(100 * item.p).toFixed(1)} %`);
    head.append(answer);
    if (labelled) head.append(make("span", isRight(item) ? "right" : "wrong", isRight(item) ? "✓ right" : "✗ wrong"));
    const number = item.agreement === null ? "" : ` ${item.agreement.toFixed(2).replace("-", "−")}`;
    head.append(make("span", "num", ACCORDS[accord(item)] + number));
    return head;
  }

  function fact(name, value) {
    const node = make("span", "", `${name} `);
    node.append(make("b", "", value));
    return node;
  }

  function pictureCard(card, item, methods) {
    card.querySelectorAll("[data-method]").forEach((node) => { node.hidden = !methods.has(Number(node.dataset.method)); });
    card.classList.toggle("sought", state.sought === item.number);
    return card;
  }

  function cardOf(item, methods) {
    if (drawn.length) return pictureCard(drawn[item.number], item, methods);
    const text = data.texts[item.text];
    const card = make("article", "card");
    card.id = `s${item.number}`;
    card.tabIndex = -1;
    card.setAttribute("aria-labelledby", `h${item.number}`);
    card.append(headOf(item));
    const all = state.whole.has(item.number);
    const stored = Math.floor(text.pieces.length / 2);
    const limit = all || stored <= CLIP * 1.5 ? Infinity : CLIP;
    for (const method of Object.keys(item.scores).map(Number)) {
      if (methods.has(method)) card.append(rowOf(item, method, limit));
    }
    if (stored > CLIP * 1.5) card.append(moreButton(item, all, stored, text.words));
    const first = card.querySelector(".w");
    if (first) first.tabIndex = 0;
    card.classList.toggle("sought", state.sought === item.number);
    return card;
  }

  // single texts elsewhere on the page, with the rows of some methods
  function illustrate() {
    document.querySelectorAll("[data-example]").forEach((node) => {
      const item = data.items[Number(node.dataset.example)];
      for (const method of node.dataset.rows.split(" ")) node.append(rowOf(item, Number(method), CLIP));
      node.hidden = false;
    });
  }

  function moreButton(item, all, stored, words) {
    const cut = stored < words ? ` kept of ${words.toLocaleString("en")}` : "";
    const button = make("button", "more", all ? "Show less" : `Show all ${stored.toLocaleString("en")} words${cut}`);
    button.type = "button";
    button.setAttribute("aria-expanded", String(all));
    button.addEventListener("click", () => {
      if (all) state.whole.delete(item.number);
      else state.whole.add(item.number);
      const fresh = cardOf(item, chosenMethods());
      byId(`s${item.number}`).replaceWith(fresh);
      fresh.querySelector(".more").focus({ preventScroll: !all });
    });
    return button;
  }

  function draw() {
    const items = found();
    const methods = chosenMethods();
    const pages = Math.max(1, Math.ceil(items.length / PER_PAGE));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const start = state.page * PER_PAGE;
    const shown = items.slice(start, start + PER_PAGE);
    hideTip();
    byId("cards").replaceChildren(
      ...(shown.length ? shown.map((item) => cardOf(item, methods)) : [make("p", "empty", `No ${one} fits these filters.`)])
    );
    byId("found").textContent = shown.length
      ? `${many} ${start + 1}–${start + shown.length} of ${items.length}`
      : `No ${one} fits these filters`;
    byId("f-count").textContent = methods.size === data.methods.length ? "all" : `${methods.size} of ${data.methods.length}`;
    document.querySelectorAll(".where").forEach((node) => { node.textContent = `page ${state.page + 1} of ${pages}`; });
    document.querySelectorAll("[data-turn]").forEach((button) => {
      const target = state.page + Number(button.dataset.turn);
      button.setAttribute("aria-disabled", String(target < 0 || target >= pages));
    });
  }

  function turn(event) {
    const button = event.currentTarget;
    if (button.getAttribute("aria-disabled") === "true") return;
    state.page += Number(button.dataset.turn);
    draw();
    const bottom = button.closest(".pager").previousElementSibling.id === "cards";
    if (bottom) byId("found").scrollIntoView({ block: "start" });
  }

  // ---- reading a word's number -------------------------------------------------------------

  function sayWord(word) {
    const row = word.closest(".row");
    const item = data.items[Number(word.closest(".card").id.slice(1))];
    const scores = item.scores[row.dataset.method];
    const score = scores[Number(word.dataset.i)];
    const kinds = marked(item, Number(word.dataset.i)).map((kind) => `, ${kind}`).join("");
    if (score === null) return `${word.textContent}: not defined${kinds}`;
    const rank = 1 + scores.filter((other) => other !== null && Math.abs(other) > Math.abs(score)).length;
    const side = score > 0 ? `supports ${label(item.target)}` : score < 0 ? `opposes ${label(item.target)}` : "no weight";
    return `${word.textContent}: ${figure(score)}, rank ${rank} of ${scores.length}, ${side}${kinds}`;
  }

  function showTip(word) {
    const tip = byId("tip");
    tip.textContent = sayWord(word);
    tip.hidden = false;
    const at = word.getClientRects()[0] || word.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left), document.documentElement.clientWidth - tip.offsetWidth - 8);
    const above = at.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 0 ? above : at.bottom + 6}px`;
    markTwins(word);
  }

  function markTwins(word) {
    document.querySelectorAll(".twin").forEach((node) => node.classList.remove("twin"));
    if (!word) return;
    word.closest(".card").querySelectorAll(`.w[data-i="${word.dataset.i}"]`).forEach((node) => {
      if (node !== word) node.classList.add("twin");
    });
  }

  function hideTip() {
    byId("tip").hidden = true;
    markTwins(null);
  }

  function neighbour(word, key) {
    const rows = [...word.closest(".card").querySelectorAll(".row")];
    const place = rows.indexOf(word.closest(".row"));
    const words = [...rows[place].querySelectorAll(".w")];
    const i = Number(word.dataset.i);
    const other = (row) => row && row.querySelector(`.w[data-i="${i}"]`);
    const moves = {
      ArrowRight: () => words[i + 1],
      ArrowLeft: () => words[i - 1],
      Home: () => words[0],
      End: () => words[words.length - 1],
      ArrowDown: () => other(rows[place + 1]),
      ArrowUp: () => other(rows[place - 1]),
    };
    return moves[key] ? moves[key]() : undefined;
  }

  function moveTo(word) {
    word.closest(".card").querySelectorAll(".w[tabindex]").forEach((node) => node.removeAttribute("tabindex"));
    word.tabIndex = 0;
    word.focus();
  }

  function onKey(event) {
    if (event.key === "Escape") hideTip();
    const word = event.target.closest(".w");
    if (!word || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = neighbour(word, event.key);
    if (next) {
      event.preventDefault();
      moveTo(next);
    }
  }

  function listenToWords() {
    const cards = byId("cards");
    const word = (event) => event.target.closest(".w");
    cards.addEventListener("pointerover", (event) => (word(event) ? showTip(word(event)) : hideTip()));
    cards.addEventListener("pointerleave", hideTip);
    cards.addEventListener("click", (event) => { if (word(event)) moveTo(word(event)); });
    cards.addEventListener("focusin", (event) => {
      if (!word(event)) return;
      showTip(word(event));
      byId("spoken").textContent = byId("tip").textContent;
    });
    cards.addEventListener("focusout", hideTip);
    cards.addEventListener("keydown", onKey);
    addEventListener("scroll", hideTip, { passive: true });
  }

  // ---- links to a sentence -------------------------------------------------------------------

  function followLink() {
    const match = /^#s(\d+)$/.exec(location.hash);
    const item = match && data.items[Number(match[1])];
    if (!item) return;
    byId("filters").reset();
    byId("f-model").value = String(item.model);
    state.sought = item.number;
    state.page = Math.floor(found().indexOf(item) / PER_PAGE);
    draw();
    const card = byId(`s${item.number}`);
    card.scrollIntoView({ block: "start" });
    card.focus({ preventScroll: true });
  }

  // ---- start -------------------------------------------------------------------------------

  data.items.forEach((item, number) => {
    item.number = number;
    item.text_id = data.texts[item.text].id;
  });
  listenToWords();
  illustrate();
  const filters = byId("filters");
  const again = () => { state.page = 0; state.sought = null; draw(); };
  filters.addEventListener("input", again);
  filters.addEventListener("submit", (event) => event.preventDefault());
  document.querySelectorAll("[data-turn]").forEach((button) => button.addEventListener("click", turn));
  byId("f-right").parentElement.hidden = !labelled;
  filters.hidden = false;
  document.querySelectorAll(".pager").forEach((node) => { node.hidden = false; });
  draw();
  addEventListener("hashchange", followLink);
  followLink();
})();
