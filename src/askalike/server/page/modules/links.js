// Addresses that posts name, checked before they become links.

import { h } from "./dom.js";

/** A link that opens beside this page, or its text alone where the address is not a web address. */
export function link(address, children) {
  const safe = webAddress(address);
  if (!safe) return h("span", {}, children);
  return h("a", { href: safe, target: "_blank", rel: "noopener noreferrer nofollow ugc" }, children);
}

/** An absolute http or https address, or null. */
export function webAddress(address) {
  if (!/^\s*https?:\/\//i.test(address ?? "")) return null;
  try {
    const { href, protocol } = new URL(address.trim());
    return protocol === "https:" || protocol === "http:" ? href : null;
  } catch {
    return null;
  }
}
