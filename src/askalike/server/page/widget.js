// Similar questions below a forum's ask form, while one types. See docs/widget.md for the attributes of its script tag.
// It adds one element with a shadow root, defines no global name, and keeps still when anything fails.
(() => {
  "use strict";
  const script = document.currentScript ?? document.querySelector('script[src*="widget.js"][data-askalike]');
  if (!script || document.querySelector("[data-askalike-suggestions]")) return;
  const base = new URL(".", script.src);
  const set = script.dataset;
  // Every language has every message, in this order; # stands for a number, and what is counted has each plural form.
  const MESSAGES = ["head", "found", "accepted", "answers", "show", "tab", "hide", "helped", "thanks", "through", "likely", "others"];
  const WORDS = {
    en: ["Asked before?", { one: "# similar question", other: "# similar questions" }, "Accepted answer", { one: "# answer", other: "# answers" }, "Answer", "opens a new tab", "Hide the suggestions", "This answered my question", "Thank you.", "found through “#”", ["almost certainly the same", "probably the same", "perhaps the same", "maybe related"], "Less likely (#)"],
    de: ["Schon gefragt?", { one: "# ähnliche Frage", other: "# ähnliche Fragen" }, "Akzeptierte Antwort", { one: "# Antwort", other: "# Antworten" }, "Antwort", "öffnet einen neuen Tab", "Vorschläge ausblenden", "Das beantwortet meine Frage", "Danke.", "gefunden über „#“", ["fast sicher dieselbe Frage", "wahrscheinlich dieselbe Frage", "vielleicht dieselbe Frage", "vielleicht verwandt"], "Weniger wahrscheinlich (#)"],
    fr: ["Déjà demandé ?", { one: "# question semblable", many: "# de questions semblables", other: "# questions semblables" }, "Réponse acceptée", { one: "# réponse", many: "# de réponses", other: "# réponses" }, "Réponse", "s’ouvre dans un nouvel onglet", "Masquer les suggestions", "Cela répond à ma question", "Merci.", "trouvée par « # »", ["presque sûrement la même", "probablement la même", "peut-être la même", "peut-être liée"], "Moins probables (#)"],
    es: ["¿Ya se preguntó?", { one: "# pregunta parecida", many: "# de preguntas parecidas", other: "# preguntas parecidas" }, "Respuesta aceptada", { one: "# respuesta", many: "# de respuestas", other: "# respuestas" }, "Respuesta", "se abre en otra pestaña", "Ocultar las sugerencias", "Esto responde a mi pregunta", "Gracias.", "hallada por «#»", ["casi seguro la misma", "probablemente la misma", "quizá la misma", "quizá relacionada"], "Menos probables (#)"],
    pt: ["Já foi perguntado?", { one: "# pergunta semelhante", many: "# de perguntas semelhantes", other: "# perguntas semelhantes" }, "Resposta aceita", { one: "# resposta", many: "# de respostas", other: "# respostas" }, "Resposta", "abre em uma nova aba", "Ocultar as sugestões", "Isso respondeu à minha pergunta", "Obrigado.", "encontrada por “#”", ["quase certamente a mesma", "provavelmente a mesma", "talvez a mesma", "talvez relacionada"], "Menos prováveis (#)"],
    it: ["È già stato chiesto?", { one: "# domanda simile", many: "# di domande simili", other: "# domande simili" }, "Risposta accettata", { one: "# risposta", many: "# di risposte", other: "# risposte" }, "Risposta", "si apre in una nuova scheda", "Nascondi i suggerimenti", "Questo risponde alla mia domanda", "Grazie.", "trovata tramite «#»", ["quasi certamente la stessa", "probabilmente la stessa", "forse la stessa", "forse collegata"], "Meno probabili (#)"],
    nl: ["Al eerder gevraagd?", { one: "# vergelijkbare vraag", other: "# vergelijkbare vragen" }, "Geaccepteerd antwoord", { one: "# antwoord", other: "# antwoorden" }, "Antwoord", "opent in een nieuw tabblad", "Suggesties verbergen", "Dit beantwoordt mijn vraag", "Bedankt.", "gevonden via “#”", ["vrijwel zeker dezelfde vraag", "waarschijnlijk dezelfde vraag", "misschien dezelfde vraag", "mogelijk verwant"], "Minder waarschijnlijk (#)"],
    pl: ["Już ktoś pytał?", { one: "# podobne pytanie", few: "# podobne pytania", many: "# podobnych pytań", other: "# podobnego pytania" }, "Zaakceptowana odpowiedź", { one: "# odpowiedź", few: "# odpowiedzi", many: "# odpowiedzi", other: "# odpowiedzi" }, "Odpowiedź", "otwiera się w nowej karcie", "Ukryj podpowiedzi", "To odpowiada na moje pytanie", "Dziękujemy.", "znalezione przez „#”", ["prawie na pewno to samo pytanie", "prawdopodobnie to samo pytanie", "być może to samo pytanie", "może powiązane"], "Mniej prawdopodobne (#)"],
    ru: ["Уже спрашивали?", { one: "# похожий вопрос", few: "# похожих вопроса", many: "# похожих вопросов", other: "# похожего вопроса" }, "Принятый ответ", { one: "# ответ", few: "# ответа", many: "# ответов", other: "# ответа" }, "Ответ", "откроется в новой вкладке", "Скрыть подсказки", "Это отвечает на мой вопрос", "Спасибо.", "найдено через «#»", ["почти наверняка тот же вопрос", "вероятно, тот же вопрос", "возможно, тот же вопрос", "возможно, связанный вопрос"], "Менее вероятные (#)"],
    ja: ["同じ質問がありませんか？", { other: "似た質問が#件" }, "承認された回答", { other: "回答#件" }, "回答", "新しいタブで開きます", "候補を隠す", "これで解決しました", "ありがとうございます。", "「#」から見つかりました", ["ほぼ確実に同じ質問", "おそらく同じ質問", "同じ質問かもしれません", "関連があるかもしれません"], "可能性の低い質問（#）"],
    zh: ["有人问过了吗？", { other: "#个相似的问题" }, "已采纳的回答", { other: "#个回答" }, "回答", "在新标签页中打开", "隐藏建议", "这解答了我的问题", "谢谢。", "通过“#”找到", ["几乎肯定是同一个问题", "很可能是同一个问题", "也许是同一个问题", "可能相关"], "可能性较低（#）"],
    ar: ["هل سبق طرح هذا السؤال؟", { zero: "لا أسئلة مشابهة", one: "سؤال واحد مشابه", two: "سؤالان مشابهان", few: "# أسئلة مشابهة", many: "# سؤالًا مشابهًا", other: "# سؤال مشابه" }, "الإجابة المقبولة", { zero: "لا إجابات", one: "إجابة واحدة", two: "إجابتان", few: "# إجابات", many: "# إجابة", other: "# إجابة" }, "الإجابة", "يُفتح في علامة تبويب جديدة", "إخفاء الاقتراحات", "هذا يجيب عن سؤالي", "شكرًا لك.", "وُجد عبر «#»", ["السؤال نفسه على الأرجح تمامًا", "السؤال نفسه على الأرجح", "ربما السؤال نفسه", "ربما ذو صلة"], "أقل احتمالًا (#)"],
  };
  const LIKELY = ["almost certainly the same", "probably the same", "perhaps the same", "maybe related"];
  const wanted = (set.lang || set.language || document.documentElement.lang || "en").slice(0, 2).toLowerCase();
  const language = Object.hasOwn(WORDS, wanted) ? wanted : "en";
  const words = Object.fromEntries(WORDS[language].map((message, place) => [MESSAGES[place], message]));
  if (set.lang && language !== wanted) console.warn(`askalike: data-lang="${set.lang}" is none of ${Object.keys(WORDS).join(", ")}.`);
  try {
    Object.assign(words, JSON.parse(set.words || "{}"));
  } catch {
    console.warn("askalike: data-words is no JSON.");
  }
  const plural = new Intl.PluralRules(language);
  const counted = (forms, number) => (forms[plural.select(number)] ?? forms.other ?? forms).replace("#", number.toLocaleString(language));
  const limit = Math.min(20, Math.max(1, parseInt(set.limit, 10) || 5));
  const minimum = set.minimum || 0; // less likely hits than the forum's threshold are folded
  const fields = ["question.url", "likelihood", "highlights", "answers", "via", "best_answer.text", "best_answer.accepted"];
  const PAUSE_MS = 350;
  const LEAST_LETTERS = 8;
  const ANSWER_LETTERS = 600;
  const MOST_MOUNTS = 50;
  // Where forums have these fields: Discourse first, then Stack Exchange's, phpBB's and Question2Answer's, then plain names.
  const TITLES = '#reply-title, #title, input[name="title"], #subject, input[name="subject"], input[name*="title" i], input[id*="title" i]';
  const BODIES = '.d-editor-input, #wmd-input, textarea[name="body"], textarea[name="message"], textarea[name="content"], textarea, [contenteditable="true"]';
  const STYLE = `:host{display:block;width:100%;flex:1 0 100%;box-sizing:border-box;margin:.5em 0;text-transform:none;letter-spacing:normal;text-align:start}
:host([hidden]){display:none}
section{position:relative;padding:.7em 1em;border:1px solid var(--askalike-border,color-mix(in srgb,currentColor 30%,transparent));border-radius:var(--askalike-radius,10px);background:var(--askalike-background,color-mix(in srgb,currentColor 4%,transparent));font-size:.95em;line-height:1.45}
p,ul{margin:0;padding:0}ul{list-style:none;max-height:max(60vh,24em);overflow:auto;padding-inline:4px;margin-inline:-4px}li{padding:.35em 0}li+li{border-top:1px solid color-mix(in srgb,currentColor 14%,transparent)}
.head{font-weight:600;padding-inline-end:2em}a{color:var(--askalike-link,inherit);font-weight:500;text-underline-offset:.2em;overflow-wrap:anywhere}a:hover{text-decoration-thickness:2px}
mark{background:var(--askalike-mark,color-mix(in srgb,#f0b400 35%,transparent));color:inherit;border-radius:3px}
small,summary,.helped{font-size:.87em}small{display:block}small,summary{opacity:.85}summary{cursor:pointer;width:fit-content;margin-top:.15em;padding:.25em 0}details p{padding-block:.3em;padding-inline-start:.8em;border-inline-start:3px solid color-mix(in srgb,currentColor 40%,transparent);white-space:pre-line;overflow-wrap:anywhere}
button{border-radius:6px;background:none;color:inherit;font:inherit;cursor:pointer}.hide{position:absolute;top:.4em;inset-inline-end:.5em;width:2em;height:2em;border:0}.helped{margin:.3em 0 .2em;margin-inline-start:.8em}.helped button{min-height:2em;padding:.1em .7em;border:1px solid}
:focus-visible{outline:2px solid;outline-offset:2px}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}`;

  const el = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children); // strings become text nodes: nothing that the service sends is read as markup
    return element;
  };
  const first = (selectors, within) => {
    for (const element of within.querySelectorAll(selectors)) if (element.type !== "hidden" && element.getClientRects().length) return element;
    return null;
  };
  const best = (selectors, within) => {
    for (const selector of selectors.split(", ")) {
      const element = first(selector, within);
      if (element) return element;
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
  const box = el("section", { hidden: true, lang: language, dir: language === "ar" ? "rtl" : "ltr" });
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
  let lastAsked = "";
  let hiddenFor = null;
  let quietUntil = 0;
  let mounts = 0;

  const WARN_AFTER_MS = 5000;
  const warnOfSelectors = () => {
    for (const name of ["title", "body", "place"])
      if (set[name] && !document.querySelector(set[name])) console.warn(`askalike: nothing matches data-${name}="${set[name]}" yet.`);
  };

  function find() {
    const field = set.title ? document.querySelector(set.title) : best(TITLES, document);
    const scope = field?.closest("form, #reply-control, [role=dialog]") ?? document;
    body = set.body ? document.querySelector(set.body) : field && best(BODIES, scope);
    if (field === title && (!field || host.isConnected)) return;
    if (field !== title) clear();
    title = field;
    if (!field) return host.remove();
    if ((mounts += 1) > MOST_MOUNTS) return; // a page that takes it out each time has its way
    const place = set.place && document.querySelector(set.place);
    (place || field.closest(".title-and-category") || field.closest("label") || field).after(host);
    host.hidden = false;
    later();
  }

  function clear() {
    running?.abort();
    lastAsked = "";
    box.hidden = true;
    said.textContent = "";
  }

  function hide() {
    hiddenFor = title; // until it is emptied
    clear();
    title?.focus();
    tell("hidden", {});
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => look().catch(() => {}), PAUSE_MS);
  }

  async function look() {
    const question = { title: textOf(title).slice(0, 1000), body: textOf(body).slice(0, 200000), k: limit, minimum, fields, order: "help", markup: set.markup || "markdown" };
    const typed = JSON.stringify(question);
    if (!question.title) hiddenFor = null;
    if (typed === lastAsked || hiddenFor === title || Date.now() < quietUntil) return;
    if (question.title.length < LEAST_LETTERS) return clear();
    running?.abort();
    running = new AbortController();
    lastAsked = typed;
    const { signal } = running;
    const answer = await post("v1/similar", { body: typed, signal });
    const result = await answer.json();
    if (signal.aborted) return;
    if (answer.ok) return show(result.hits, set.minimum ? null : result.least);
    quietUntil = Date.now() + 1000 * (Number(answer.headers.get("Retry-After")) || (answer.status < 429 ? 60 : 5));
    console.warn(`askalike: ${result.error}. ${result.hint}`);
  }

  function post(path, more) {
    const headers = { "Content-Type": "application/json" };
    if (set.key) headers.Authorization = `Bearer ${set.key}`;
    return fetch(new URL(path, base), { method: "POST", headers, credentials: "omit", referrerPolicy: "no-referrer", ...more });
  }

  function show(all, least) {
    const hits = all.filter(({ likelihood }) => least === null || (likelihood.value ?? least) >= least);
    const others = all.filter((hit) => !hits.includes(hit));
    said.textContent = hits.length ? counted(words.found, hits.length) : "";
    box.hidden = !hits.length;
    const button = el("button", { type: "button", className: "hide", textContent: "×", title: "Esc", onclick: hide });
    button.setAttribute("aria-label", words.hide);
    const summary = el("summary", {}, words.others.replace("#", others.length.toLocaleString(language)));
    const folded = others.length ? [el("details", { className: "others" }, summary, el("ul", {}, ...others.map(item)))] : [];
    box.replaceChildren(el("p", { className: "head" }, words.head), el("ul", {}, ...hits.map(item)), ...folded, button);
    tell("shown", { questions: hits.map(factsOf) });
  }

  const factsOf = ({ question, likelihood }) => ({ id: question.id, title: question.title, url: addressOf(question), probability: likelihood.value });
  const pathOf = ({ id }) => `v1/questions/${encodeURIComponent(id)}`;
  const addressOf = ({ id, url }) => webAddress(url) ?? new URL(`#/explore/${encodeURIComponent(id)}`, base).href;

  function item(hit) {
    const { question, highlights, likelihood, best_answer: answer, answers, via } = hit;
    const opened = () => {
      post(`${pathOf(question)}/opened`, { keepalive: true }).catch(() => {});
      tell("opened", factsOf(hit));
    };
    const link = el("a", { href: addressOf(question), target: "_blank", rel: "noopener", dir: "auto", onclick: opened }, ...marked(question.title || question.id, highlights?.title ?? []));
    link.append(el("span", { className: "unseen" }, ` (${words.tab})`));
    const [before, after] = words.through.split("#");
    const named = [link, ...(via ? [el("small", { dir: "auto" }, before, ...marked(via.title || via.id, via.highlights ?? []), after)] : [])];
    const facts = [words.likely[LIKELY.indexOf(likelihood?.word)], answers && counted(words.answers, answers)];
    if (answer?.text) facts.push(answer.accepted ? words.accepted : words.show);
    const line = facts.filter(Boolean).join(" · ");
    if (!answer?.text) return el("li", {}, ...named, el("small", {}, line));
    const text = answer.text.length > ANSWER_LETTERS ? `${answer.text.slice(0, ANSWER_LETTERS)}…` : answer.text;
    return el("li", {}, ...named, el("details", {}, el("summary", {}, line), el("p", { dir: "auto" }, text), helpedButton(hit)));
  }

  function helpedButton(hit) {
    const button = el("button", { type: "button" }, words.helped);
    const place = el("div", { className: "helped" }, button);
    button.onclick = async () => {
      button.disabled = true;
      const answer = await post(`${pathOf(hit.question)}/helped`).catch(() => null);
      if (!answer?.ok) return void (button.disabled = false);
      place.textContent = said.textContent = words.thanks;
      tell("helped", factsOf(hit));
    };
    return place;
  }

  function marked(text, ranges) {
    const letters = Array.from(text); // ranges count code points
    const parts = [];
    let end = 0;
    for (const [from, to] of ranges) {
      parts.push(letters.slice(end, from).join(""), el("mark", {}, letters.slice(from, to).join("")));
      end = to;
    }
    return [...parts, letters.slice(end).join("")];
  }

  const calmly = (action) => (event) => {
    try {
      action(event);
    } catch {
      // The page's own work goes on whatever happens here.
    }
  };
  const isOurs = (target) => title && (target === title || body?.contains(target));
  const typed = calmly(({ target }) => isOurs(target) && later());
  const pressed = calmly((event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Escape: 0 }[event.key];
    if (step === undefined || event.isComposing || box.hidden || !(event.target === host || isOurs(event.target))) return;
    const stops = [title, ...box.querySelectorAll("a")].filter((stop) => stop.getClientRects().length);
    const at = stops.indexOf(event.composedPath()[0]);
    const next = stops[at + step];
    if (step && (at < 0 || !next)) return;
    event.preventDefault(); // a composer or dialogue around stays open this time
    event.stopPropagation();
    step ? next.focus() : hide();
  });
  let looking = 0;
  const changed = () => {
    looking ||= setTimeout(calmly(() => ((looking = 0), find())), 150);
  };
  const start = () => {
    document.addEventListener("input", typed, { capture: true, passive: true });
    window.addEventListener("keydown", pressed, { capture: true });
    new MutationObserver(changed).observe(document.body, { childList: true, subtree: true });
    changed();
    setTimeout(calmly(warnOfSelectors), WARN_AFTER_MS);
  };
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start, { once: true });
})();
