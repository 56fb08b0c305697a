// The search of the reference: names and the text of guides, from the index that tools/reference_pages.py makes.
// An entry matches if each word of the query begins one of its words; the sum of their weights orders the entries.
"use strict";

const MOST = 30;

// "pooling", "sentences", "padded" and "tune" find "pool", "sentence", "pad" and "tuning" as well.
function beginning(word) {
  const stem = word.replace(/(?:ings?|ed|es?|s)$/, "");
  return stem.length < 3 ? word : stem.replace(/([bdgmnprt])\1$/, "$1");
}

// The entries {title, place, url} of `index` for the text of a query, the best first.
function find(index, query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  let scores = null;
  for (const word of words) {
    const begins = beginning(word), found = new Map();
    for (const [indexed, entries] of Object.entries(index.words)) {
      if (!indexed.startsWith(begins)) continue;
      const closeness = indexed === word ? 4 : indexed.startsWith(word) || beginning(indexed) === begins ? 2 : 1;
      for (let i = 0; i < entries.length; i += 2) {
        const score = closeness * entries[i + 1];
        found.set(entries[i], Math.max(score, found.get(entries[i]) || 0));
      }
    }
    if (scores === null) { scores = found; continue; }
    scores = new Map([...scores].filter(([entry]) => found.has(entry)).map(([entry, score]) => [entry, score + found.get(entry)]));
  }
  const best = [...(scores || [])].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, MOST);
  return best.map(([entry]) => ({title: index.entries[entry][0], place: index.entries[entry][1], url: index.entries[entry][2]}));
}

function element(tag, attributes, parent) {
  const made = document.createElement(tag);
  Object.assign(made, attributes);
  parent.append(made);
  return made;
}

function show(list, results, query) {
  list.replaceChildren();
  list.hidden = !query.trim();
  list.style.top = `${document.getElementById("find").getBoundingClientRect().bottom + 4}px`;
  for (const {title, place, url} of results) {
    const link = element("a", {href: url}, list);
    element("b", {textContent: title}, link);
    element("span", {textContent: place}, link);
  }
  if (!results.length) element("p", {textContent: "Nothing found"}, list);
}

function addSearch() {
  const box = element("input", {id: "find", type: "search", placeholder: "Search names and guides", autocomplete: "off"},
      document.getElementById("titlearea"));
  const list = element("div", {id: "found", hidden: true}, document.body);
  const update = () => show(list, typeof POSENC_INDEX === "undefined" ? [] : find(POSENC_INDEX, box.value), box.value);
  // The index is read when it is first needed, as a script: a page from a disk may not read other files.
  box.addEventListener("focus", () => element("script", {src: "search_index.js", onload: update}, document.head), {once: true});
  box.addEventListener("input", update);
  document.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    const isHere = event.target === box || at >= 0;
    if (event.key === "/" && !isHere) { event.preventDefault(); box.focus(); }
    if (event.key === "Escape" && isHere) { box.value = ""; update(); box.focus(); }
    if (event.key === "Enter" && event.target === box && links.length) links[0].click();
    if (isHere && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      ([box, ...links][at + 1 + (event.key === "ArrowDown" ? 1 : -1)] || box).focus();
    }
  });
  document.addEventListener("click", (event) => { list.hidden = event.target !== box || !box.value.trim(); });
}

if (typeof document === "undefined") module.exports = {find};
else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", addSearch);
else addSearch();
