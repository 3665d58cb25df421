// Draws what a reply rests on: a chip for each source, which opens its passage.

import { make } from "./layout.js";

const JOINT = " › "; // between a file and its headings

let panels = 0;

export function sourcesOf() {
  const chips = make("ul", {});
  const panel = make("div", { class: "passage", id: `passage-${panels += 1}`, role: "group" });
  // Not live: who opens a passage reads it in their own time.
  const root = make("div", { class: "sources", role: "group", "aria-label": "Sources", "aria-live": "off" }, chips, panel);
  let shown = "";
  let open = null; // the chip of the passage that is open

  function close() {
    open?.setAttribute("aria-expanded", "false");
    open = null;
    panel.hidden = true;
    panel.replaceChildren();
  }

  function toggle(chip, passage) {
    const wasOpen = open === chip;
    close();
    if (wasOpen) return;
    open = chip;
    chip.setAttribute("aria-expanded", "true");
    const text = make("div", { class: "reply" });
    text.innerHTML = passage.blocks.map((html) => `<div>${html}</div>`).join(""); // rendered by the server
    panel.setAttribute("aria-label", nameOf(passage.title, passage));
    panel.append(make("p", { class: "from" }, nameOf(passage.title, passage)), text);
    panel.hidden = false;
    root.scrollIntoView({ block: "nearest" });
  }

  function chipOf(label, passage) {
    const name = nameOf(shortened(label), passage);
    if (!passage) return make("li", {}, make("span", { title: label }, name));
    const chip = make("button", { type: "button", title: label, "aria-expanded": "false", "aria-controls": panel.id }, name);
    chip.addEventListener("click", () => toggle(chip, passage));
    return make("li", {}, chip);
  }

  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !open) return;
    event.stopPropagation();
    open.focus();
    close();
  });

  // `behind` holds a passage for each label that has one.
  function show(labels, behind) {
    if (shown === labels.join("\n")) return;
    shown = labels.join("\n");
    close();
    chips.replaceChildren(...labels.map((label) => chipOf(label, behind[label])));
    root.hidden = !labels.length;
  }
  close();
  root.hidden = true;
  return { root, show };
}

const nameOf = (label, passage) => (passage?.in_person ? `Answered in person: ${passage.title}` : label);

// The file and the last heading: those between are in the passage's own line.
function shortened(label) {
  const parts = label.split(JOINT);
  return parts.length > 2 ? `${parts[0]}${JOINT}${parts.at(-1)}` : label;
}
