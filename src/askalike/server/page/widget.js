// Similar questions below a forum's ask form, while one types. See docs/widget.md for the attributes of its script tag.
// It adds one element with a shadow root, defines no global name, and keeps still when anything fails.
(() => {
  "use strict";
  const script = document.currentScript ?? document.querySelector('script[src*="widget.js"][data-askalike]');
  if (!script || document.querySelector("[data-askalike-suggestions]")) return;
  const base = new URL(".", script.src);
  const set = script.dataset;
  const WORDS = {
    en: { head: "Asked before?", one: "1 similar question", more: "# similar questions", accepted: "Accepted answer", answers: "answers: #", show: "Answer", tab: "opens a new tab", hide: "Hide the suggestions", helped: "This answered my question", thanks: "Thank you.", likely: ["almost certainly the same", "probably the same", "perhaps the same", "maybe related"] },
    de: { head: "Schon gefragt?", one: "1 ähnliche Frage", more: "# ähnliche Fragen", accepted: "Akzeptierte Antwort", answers: "Antworten: #", show: "Antwort", tab: "öffnet einen neuen Tab", hide: "Vorschläge ausblenden", helped: "Das beantwortet meine Frage", thanks: "Danke.", likely: ["fast sicher dieselbe Frage", "wahrscheinlich dieselbe Frage", "vielleicht dieselbe Frage", "vielleicht verwandt"] },
    es: { head: "¿Ya se preguntó?", one: "1 pregunta parecida", more: "# preguntas parecidas", accepted: "Respuesta aceptada", answers: "respuestas: #", show: "Respuesta", tab: "se abre en otra pestaña", hide: "Ocultar las sugerencias", helped: "Esto responde a mi pregunta", thanks: "Gracias.", likely: ["casi seguro la misma", "probablemente la misma", "quizá la misma", "quizá relacionada"] },
    fr: { head: "Déjà demandé ?", one: "1 question semblable", more: "# questions semblables", accepted: "Réponse acceptée", answers: "réponses : #", show: "Réponse", tab: "s’ouvre dans un nouvel onglet", hide: "Masquer les suggestions", helped: "Cela répond à ma question", thanks: "Merci.", likely: ["presque sûrement la même", "probablement la même", "peut-être la même", "peut-être liée"] },
  };
  const LIKELY = ["almost certain", "likely", "possible", "unlikely"];
  const language = (set.language || document.documentElement.lang || "en").slice(0, 2).toLowerCase();
  const words = WORDS[language] ?? WORDS.en;
  const limit = Math.min(20, Math.max(1, parseInt(set.limit, 10) || 5));
  const minimum = set.minimum || "default";
  const PAUSE_MS = 350;
  const LEAST_LETTERS = 8;
  const ANSWER_LETTERS = 600;
  const MOST_MOUNTS = 50;
  // Where forums have these fields: Discourse first, then Stack Exchange's, phpBB's and Question2Answer's, then plain names.
  const TITLES = '#reply-title, #title, input[name="title"], #subject, input[name="subject"], input[name*="title" i], input[id*="title" i]';
  const BODIES = '.d-editor-input, #wmd-input, textarea[name="body"], textarea[name="message"], textarea[name="content"], textarea, [contenteditable="true"]';
  const STYLE = `:host{display:block;width:100%;flex:1 0 100%;box-sizing:border-box;margin:.5em 0;text-transform:none;letter-spacing:normal;text-align:start}
:host([hidden]){display:none}
section{position:relative;padding:.7em 1em;border:1px solid;border-color:color-mix(in srgb,currentColor 30%,transparent);border-radius:10px;background:color-mix(in srgb,currentColor 4%,transparent);font-size:.95em;line-height:1.45}
p,ul{margin:0;padding:0}ul{list-style:none}li{padding:.35em 0}li+li{border-top:1px solid color-mix(in srgb,currentColor 14%,transparent)}
.head{font-weight:600;padding-right:2em}a{color:inherit;font-weight:500;text-underline-offset:.2em;overflow-wrap:anywhere}a:hover{text-decoration-thickness:2px}
mark{background:color-mix(in srgb,#f0b400 35%,transparent);color:inherit;border-radius:3px}
small,.helped{font-size:.87em}small{display:block;opacity:.85}summary{cursor:pointer;font-size:.87em;width:fit-content;padding:.25em 0}details p{padding:.3em 0 .3em .8em;border-left:3px solid color-mix(in srgb,currentColor 40%,transparent);white-space:pre-line;overflow-wrap:anywhere}
button{border-radius:6px;background:none;color:inherit;font:inherit;cursor:pointer}.hide{position:absolute;top:.4em;right:.5em;width:2em;height:2em;border:0}.helped{margin:.3em 0 .2em .8em}.helped button{min-height:2em;padding:.1em .7em;border:1px solid}
:focus-visible{outline:2px solid;outline-offset:2px}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}`;

  const el = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children); // strings become text nodes: nothing that the service sends is read as markup
    return made;
  };
  const first = (selectors, within) => {
    for (const one of within.querySelectorAll(selectors)) if (one.type !== "hidden" && one.getClientRects().length) return one;
    return null;
  };
  const best = (selectors, within) => {
    for (const one of selectors.split(", ")) {
      const found = first(one, within);
      if (found) return found;
    }
    return null;
  };
  const tell = (name, detail) => host.dispatchEvent(new CustomEvent(`askalike:${name}`, { bubbles: true, detail }));
  const textOf = (field) => (field ? (field.value ?? field.innerText ?? "") : "").trim();
  const webAddress = (address) => (/^https?:\/\//i.test(address ?? "") ? address : null);

  const host = el("div", { hidden: true });
  host.dataset.askalikeSuggestions = "";
  const root = host.attachShadow({ mode: "open" });
  const said = el("p", { className: "unseen" });
  said.setAttribute("role", "status");
  const box = el("section", { hidden: true, lang: words === WORDS.en ? "en" : language });
  box.setAttribute("aria-label", words.head);
  root.append(box, said);
  try {
    const sheet = new CSSStyleSheet(); // a page's style-src does not hold for it
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
  } catch {
    root.prepend(el("style", { textContent: STYLE }));
  }

  let title = null;
  let body = null;
  let timer = 0;
  let running = null;
  let asked = "";
  let hiddenFor = null;
  let quietUntil = 0;
  let mounts = 0;

  function find() {
    const found = set.title ? document.querySelector(set.title) : best(TITLES, document);
    const scope = found?.closest("form, #reply-control, [role=dialog]") ?? document;
    body = set.body ? document.querySelector(set.body) : found && best(BODIES, scope);
    if (found === title && (!found || host.isConnected)) return;
    if (found !== title) clear();
    title = found;
    if (!found) return host.remove();
    if ((mounts += 1) > MOST_MOUNTS) return; // a page that takes it out each time has its way
    const place = set.place && document.querySelector(set.place);
    (place || found.closest(".title-and-category") || found.closest("label") || found).after(host);
    host.hidden = false;
    later();
  }

  function clear() {
    running?.abort();
    asked = "";
    box.hidden = true;
    said.textContent = "";
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => look().catch(() => {}), PAUSE_MS);
  }

  async function look() {
    const question = { title: textOf(title).slice(0, 1000), body: textOf(body).slice(0, 200000), k: limit, minimum, order: "help", markup: set.markup || "markdown", draft: true };
    const typed = JSON.stringify(question);
    if (typed === asked || hiddenFor === title || Date.now() < quietUntil) return;
    if (question.title.length < LEAST_LETTERS) return clear();
    running?.abort();
    running = new AbortController();
    asked = typed;
    const { signal } = running;
    const answer = await post("v1/similar", { body: typed, signal });
    const found = await answer.json();
    if (signal.aborted) return;
    if (answer.ok) return show(found.hits);
    quietUntil = Date.now() + 1000 * (Number(answer.headers.get("Retry-After")) || (answer.status < 429 ? 60 : 5));
    console.warn(`askalike: ${found.error}. ${found.hint}`);
  }

  function post(path, more) {
    const headers = { "Content-Type": "application/json" };
    if (set.key) headers.Authorization = `Bearer ${set.key}`;
    return fetch(new URL(path, base), { method: "POST", headers, credentials: "omit", referrerPolicy: "no-referrer", ...more });
  }

  function show(hits) {
    const count = hits.length === 1 ? words.one : words.more.replace("#", hits.length);
    said.textContent = hits.length ? count : "";
    box.hidden = !hits.length;
    const hide = el("button", { type: "button", className: "hide", textContent: "×", onclick: () => ((hiddenFor = title), clear(), title?.focus(), tell("hidden", {})) });
    hide.setAttribute("aria-label", words.hide);
    box.replaceChildren(el("p", { className: "head" }, words.head), el("ul", {}, ...hits.map(item)), hide);
    tell("shown", { questions: hits.map(factsOf) });
  }

  const factsOf = ({ question, likelihood }) => ({ id: question.id, title: question.title, url: addressOf(question), probability: likelihood.value });
  const addressOf = ({ id, url }) => webAddress(url) ?? new URL(`#/explore/${encodeURIComponent(id)}`, base).href;

  function item(hit) {
    const { question, highlights, likelihood, best_answer: answer, answers } = hit;
    const opened = () => tell("opened", factsOf(hit));
    const link = el("a", { href: addressOf(question), target: "_blank", rel: "noopener", onclick: opened }, ...marked(question.title || question.id, highlights?.title ?? []));
    link.append(el("span", { className: "unseen" }, ` (${words.tab})`));
    const facts = [words.likely[LIKELY.indexOf(likelihood?.word)], answers && words.answers.replace("#", answers)];
    const made = el("li", {}, link, el("small", {}, facts.filter(Boolean).join(" · ")));
    if (!answer?.text) return made;
    const text = answer.text.length > ANSWER_LETTERS ? `${answer.text.slice(0, ANSWER_LETTERS)}…` : answer.text;
    made.append(el("details", {}, el("summary", {}, answer.accepted ? words.accepted : words.show), el("p", {}, text), helpedButton(hit)));
    return made;
  }

  function helpedButton(hit) {
    const button = el("button", { type: "button" }, words.helped);
    const place = el("div", { className: "helped" }, button);
    button.onclick = async () => {
      button.disabled = true;
      const answer = await post(`v1/questions/${encodeURIComponent(hit.question.id)}/helped`).catch(() => null);
      if (!answer?.ok) return (button.disabled = false);
      place.textContent = said.textContent = words.thanks;
      tell("helped", factsOf(hit));
    };
    return place;
  }

  function marked(text, ranges) {
    const letters = Array.from(text); // ranges count code points
    const made = [];
    let end = 0;
    for (const [from, to] of ranges) {
      made.push(letters.slice(end, from).join(""), el("mark", {}, letters.slice(from, to).join("")));
      end = to;
    }
    return [...made, letters.slice(end).join("")];
  }

  const calmly = (action) => (event) => {
    try {
      action(event);
    } catch {
      // The page's own work goes on whatever happens here.
    }
  };
  const typed = calmly(({ target }) => {
    if (title && (target === title || target === body || body?.contains(target))) later();
  });
  let looking = 0;
  const changed = () => {
    looking ||= setTimeout(calmly(() => ((looking = 0), find())), 150);
  };
  const start = () => {
    document.addEventListener("input", typed, { capture: true, passive: true });
    new MutationObserver(changed).observe(document.body, { childList: true, subtree: true });
    changed();
  };
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start, { once: true });
})();
