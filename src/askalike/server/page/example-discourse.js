// Opens a composer with the names that Discourse gives its fields.
const composer = document.getElementById("reply-control");

document.getElementById("create-topic").addEventListener("click", () => {
  if (!composer.hidden) return;
  const make = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const title = make("input", {
    id: "reply-title",
    type: "text",
    placeholder: "Type title, or paste a link here",
    autocomplete: "off",
  });
  title.setAttribute("aria-label", "Title");
  const editor = make("textarea", { className: "d-editor-input", placeholder: "Type here. Use Markdown to format." });
  editor.setAttribute("aria-label", "Body");
  const close = make("button", { className: "btn plain", type: "button", textContent: "Close" });
  close.addEventListener("click", () => {
    composer.hidden = true;
    composer.replaceChildren();
  });
  composer.replaceChildren(
    make(
      "div",
      { className: "composer-fields" },
      make("div", { className: "title-and-category" }, make("div", { className: "title-input" }, title)),
      make("div", { className: "d-editor" }, editor),
      make(
        "div",
        { className: "submit-panel" },
        make("button", { className: "btn", type: "button", textContent: "Create topic" }),
        close,
      ),
    ),
  );
  composer.hidden = false;
  title.focus();
});
