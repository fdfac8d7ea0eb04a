"use strict";
// `table` lists all objects; `root` is the document's number. Runs at the document's first bytes.
let open = table.length;
const held = document.createElement("iframe");
held.style.display = "none";
document.documentElement.append(held);
// The load event waits for a frame whose document is not closed.
held.contentDocument.open();
const elements = {
  script: ["script", "src"], style: ["link", "href"], image: ["img", "src"], font: ["link", "href"], frame: ["iframe", "src"],
};
const reached = new Set();
const complete = new Set();
function done(id) {
  if (complete.has(id)) return;
  complete.add(id);
  if (id !== root && --open === 0) held.contentDocument.close();
  follow(id, "end");
}
function follow(id, event) {
  for (const object of table) {
    if (object.after === id && object.event === event && !object.written) setTimeout(() => ask(object), object.delay);
  }
}
function ask(object) {
  if (reached.has(object.id)) return;
  reached.add(object.id);
  const end = () => done(object.id);
  if (object.as === "fetch") {
    fetch(object.url, {priority: object.urgent ? "high" : "low"}).then((answer) => answer.arrayBuffer()).then(end, end);
  } else {
    const [name, address] = elements[object.as];
    const element = document.createElement(name);
    if (object.as === "style") element.rel = "stylesheet";
    if (object.as === "font") { element.rel = "preload"; element.as = "font"; element.crossOrigin = "anonymous"; }
    element.fetchPriority = object.urgent ? "high" : "low";
    element.onload = element.onerror = end;
    element[address] = object.url;
    (document.body || document.documentElement).append(element);
  }
  follow(object.id, "request");
}
function ended() {
  done(root);
  for (const object of table) if (object.written) follow(object.id, "request");
}
follow(root, "request");
if (open === 0) held.contentDocument.close();
