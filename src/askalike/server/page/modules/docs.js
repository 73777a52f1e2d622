// The service's OpenAPI document for people: each route with what it takes, what it answers and a call to copy.

import { fill, h } from "./dom.js";
import { waiting, wrong } from "./notes.js";

const BASE = new URL(".", document.baseURI);
const main = document.getElementById("main");
const nameOf = (schema) => schema.$ref?.split("/").at(-1);

async function show() {
  const section = h("section", { class: "api" }, h("h1", { tabindex: "-1" }, "API"), waiting(3));
  fill(main, section);
  try {
    const answer = await fetch(new URL("openapi.json", BASE), { credentials: "omit" });
    if (!answer.ok) throw new Error(`The service answered ${answer.status}`);
    draw(section, await answer.json());
  } catch (error) {
    fill(section, h("h1", { tabindex: "-1" }, "API"), wrong({ message: error.message, hint: "" }, show));
  }
}

function draw(section, { info, paths, components }) {
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => route(method.toUpperCase(), path, one, components.schemas)),
  );
  const shapes = Object.entries(components.schemas).map(([name, schema]) =>
    folded("shape", name, [h("code", {}, name), h("span", { class: "aside" }, schema.description)], [fields(schema)]),
  );
  fill(
    section,
    h("h1", { tabindex: "-1" }, "API"),
    h("p", { class: "aside" }, `${info.title} ${info.version}. ${info.description}`),
    h("h2", {}, "Routes"),
    routes,
    h("h2", {}, "Shapes"),
    shapes,
  );
  unfold();
}

function route(method, path, one, schemas) {
  const parameters = one.parameters ?? [];
  const [media, sent] = Object.entries(one.requestBody?.content ?? {})[0] ?? [];
  const [, answered] = Object.entries(one.responses["200"].content)[0];
  const refusals = Object.keys(one.responses).filter((status) => status !== "200");
  const body = sent && (schemas[nameOf(sent.schema)] ?? null);
  return folded(
    "route",
    one.operationId,
    [h("span", { class: "method" }, method), h("code", {}, path), h("span", { class: "aside" }, one.summary)],
    [
      one.description ? h("p", { class: "aside" }, one.description) : null,
      parameters.length ? [h("h3", {}, "Parameters"), table(parameters.map((it) => [it.name, it.schema, it.required]))] : null,
      sent ? [h("h3", {}, `Body, ${media}`), body ? fields(body) : h("p", {}, typeOf(sent.schema))] : null,
      h("h3", {}, "Answer"),
      h("p", {}, typeOf(answered.schema)),
      h("p", { class: "aside" }, `Refused with ${refusals.join(", ")}.`),
      h("pre", { tabindex: "0" }, call(method, path, media, body)),
    ],
  );
}

/** A call of the route for a shell, with the fields that a body must have. */
function call(method, path, media, body) {
  const needed = Object.entries(body?.properties ?? {}).filter(([name]) => body.required?.includes(name));
  const shown = needed.length ? needed : Object.entries(body?.properties ?? {}).slice(0, 1);
  const example = Object.fromEntries(shown.map(([name, schema]) => [name, exampleOf(schema)]));
  const address = new URL(path.replace(/^\//, "").replaceAll(/\{(\w+)\}/g, (_, name) => name.toUpperCase()), BASE).href;
  const parts = [`curl ${method === "GET" ? "" : `-X ${method} `}'${address}'`];
  if (media) parts.push(`-H 'Content-Type: ${media}'`, `-d '${JSON.stringify(example)}'`);
  return parts.join(" \\\n  ");
}

function exampleOf(schema) {
  if (schema.enum) return schema.enum[0];
  if (schema.type === "array") return [exampleOf(schema.items ?? {})];
  return { integer: 1, number: 0.5, boolean: true }[schema.type] ?? "…";
}

function folded(kind, id, summary, inside) {
  return h(
    "details",
    { class: `card ${kind}`, id },
    h("summary", {}, summary),
    h("div", { class: "inside" }, inside),
  );
}

const fields = ({ properties = {}, required = [] }) =>
  table(Object.entries(properties).map(([name, schema]) => [name, schema, required.includes(name)]));

function table(rows) {
  const heading = ["Name", "Type", "About"].map((name) => h("th", { scope: "col" }, name));
  return h("table", {}, h("thead", {}, h("tr", {}, heading)), h("tbody", {}, rows.map(row)));
}

function row([name, schema, isRequired]) {
  const given = "default" in schema && schema.default !== null ? `Default: ${JSON.stringify(schema.default)}.` : "";
  const about = schema.description ?? schema.anyOf?.find((one) => one.description)?.description ?? "";
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, h("code", {}, name), isRequired ? " (required)" : ""),
    h("td", {}, typeOf(schema)),
    h("td", {}, [about, given].filter(Boolean).join(" ")),
  );
}

/** What a value may be, as text with links to shapes. */
function typeOf(schema) {
  const name = nameOf(schema);
  if (name) return h("a", { href: `#${name}` }, name);
  if (schema.anyOf) return schema.anyOf.flatMap((one, at) => (at ? [" or ", typeOf(one)] : [typeOf(one)]));
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.prefixItems) return ["[", schema.prefixItems.map((one, at) => (at ? [", ", typeOf(one)] : [typeOf(one)])), "]"];
  if (schema.type === "array") return schema.items ? ["list of ", typeOf(schema.items)] : "list";
  if (schema.type === "object" && schema.additionalProperties) return ["object of ", typeOf(schema.additionalProperties)];
  const least = schema.minimum ?? schema.exclusiveMinimum;
  const range = least !== undefined && schema.maximum !== undefined ? `, ${least} to ${schema.maximum}` : "";
  return `${schema.format ?? schema.type ?? "anything"}${range}`;
}

/** Opens what the address names. */
function unfold() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted?.matches("details")) {
    wanted.open = true;
    wanted.scrollIntoView();
  }
}

window.addEventListener("hashchange", unfold);
show();
