// Draws what the owner in person does: words to this visitor, and the sign that the chat is closed.

import { make } from "./layout.js";

// The words that follow one turn. `show` takes all of them, and returns the blocks that are new.
export function wordsOf(owner) {
  const root = make("div", { class: "words" });
  const drawn = new Map(); // by id: what stays is not read out again
  function show(words) {
    const ids = new Set(words.map(({ id }) => id));
    for (const [id, block] of drawn) {
      if (ids.has(id)) continue;
      block.remove();
      drawn.delete(id);
    }
    return words.filter(({ id }) => !drawn.has(id)).map((one) => {
      const block = blockOf(one, owner);
      drawn.set(one.id, block);
      root.append(block);
      return block;
    });
  }
  return { root, show };
}

function blockOf({ question, blocks, written }, { name, picture }) {
  const did = question ? " answered in person" : " wrote to you in person";
  const said = make("div", { class: "reply" });
  said.innerHTML = blocks.map((html) => `<div>${html}</div>`).join(""); // rendered by the server, as replies are
  return make("section", { role: "group", "aria-label": name + did, tabindex: "-1", "data-testid": "owner" },
    make("header", {},
      make("img", { src: picture, alt: "", width: "28", height: "28" }),
      make("p", {}, make("strong", {}, name), did),
      timeOf(written)),
    ...(question ? [make("p", { class: "about" }, question)] : []),
    said);
}

function timeOf(written) {
  const at = new Date(written);
  const isToday = at.toDateString() === new Date().toDateString();
  const shown = at.toLocaleString([], { dateStyle: isToday ? undefined : "medium", timeStyle: "short" });
  const title = at.toLocaleString([], { dateStyle: "full", timeStyle: "short" });
  return make("time", { datetime: written, title }, shown);
}

// Shows `button` as long as a block with new words is out of sight. Pressed, it leads there.
export function pointTo(block, button) {
  const watching = new IntersectionObserver(([{ isIntersecting }]) => {
    button.hidden = isIntersecting || !block.isConnected;
    if (button.hidden) watching.disconnect();
  });
  watching.observe(block);
  button.onclick = () => {
    block.scrollIntoView({ block: "nearest" });
    block.focus({ preventScroll: true });
  };
}

// Writes what the owner wrote under the turns that it follows. Returns the last block that is new, if there is one, or
// nothing at all where other turns stand here: the visitor went on in another tab, or the owner has forgotten them.
export function writeUnder(turns, placed) {
  const last = Math.max(-1, ...turns.map((turn) => turn.number ?? -1));
  if (!placed.length || placed.some(({ number, words }) => number > last && words.length)) return undefined;
  const written = new Map(placed.map(({ number, words }) => [number, words]));
  const known = turns.filter((turn) => written.has(turn.number));
  return known.flatMap((turn) => turn.write(written.get(turn.number))).at(-1) || null;
}

// The sign over the message box. While it hangs there nothing is sent; the box keeps what is written.
export function signOf(page, sign, send, name) {
  const words = `${name} has closed this chat for a while. What you write stays in the box; please come back later.`;
  let hangs = false;
  return {
    // Returns whether that is new.
    hang(closed) {
      if (hangs === closed) return false;
      hangs = closed;
      page.dataset.closed = closed ? "yes" : "no";
      send.setAttribute("aria-disabled", String(closed));
      sign.textContent = closed ? words : "";
      return true;
    },
    // Returns whether it keeps somebody from sending, who then hears why.
    stops() {
      if (!hangs) return false;
      sign.textContent = "";
      requestAnimationFrame(() => { sign.textContent = hangs ? words : ""; });
      return true;
    },
  };
}
