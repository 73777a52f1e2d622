// Long posts are folded: their beginning is shown, the rest by a button, or when one comes to it by keyboard or by searching.

import { h, icon, PATHS } from "./dom.js";

const MOST_PIXELS = 900; // of a post that is shown whole; of a longer one the style sheet shows two thirds of that

/** A post that folds itself, once it is laid out, where it is long; with the button that shows all of it. */
export function foldedWhereLong(post) {
  const whole = h("div", { class: "body" }, post);
  const observer = new ResizeObserver(() => {
    if (!post.offsetHeight) return; // not shown yet
    observer.disconnect();
    if (post.offsetHeight > MOST_PIXELS) fold(whole, post);
  });
  observer.observe(post);
  return whole;
}

function fold(whole, post) {
  const word = h("span", {});
  const button = h("button", { class: "button quiet all", type: "button" }, icon(PATHS.chevron), word);
  const set = (isFolded) => {
    post.classList.toggle("long", isFolded);
    button.setAttribute("aria-expanded", String(!isFolded));
    word.textContent = isFolded ? "Show all" : "Show less";
  };
  button.addEventListener("click", () => {
    const isFolded = !post.classList.contains("long");
    set(isFolded);
    if (isFolded) whole.scrollIntoView({ block: "nearest" });
  });
  post.addEventListener("scroll", () => set(false)); // something further down was focused or found
  set(true);
  whole.append(button);
}
