// Draws one turn: what the visitor asked, what was done, the reply, and what can be done with it.

import { make } from "./layout.js";
import { wordsOf } from "./owner.js";
import { sourcesOf } from "./sources.js";

const MARKS = { stopped: "Stopped.", broken: "This answer broke off." };
const ICONS = {
  copy: '<rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5 15V6a2 2 0 0 1 2-2h8"/>',
  copied: '<path d="m5 12.5 4.5 4.5L19 7.5"/>',
  up: '<path d="M7 11v9H4v-9zm0 0 4-8c1.7 0 2.5 1.2 2.5 2.8V9h5a2 2 0 0 1 2 2.3l-1 6.9a2 2 0 0 1-2 1.8H7"/>',
  down: '<path d="M7 13V4H4v9zm0 0 4 8c1.7 0 2.5-1.2 2.5-2.8V15h5a2 2 0 0 0 2-2.3l-1-6.9a2 2 0 0 0-2-1.8H7"/>',
  retry: '<path d="M19.5 12a7.5 7.5 0 1 1-2.2-5.3L20 9.3"/><path d="M20 4v5.3h-5.3"/>',
};
const COPIED_MS = 1600;

export const isBusy = (state) => state === "waiting" || state === "streaming";

// `on` holds what the buttons do: `on.retry(turn)` and `on.rate(turn, "up" | "down" | "none")`; and who is replicated.
export function turnOf(question, on) {
  const asked = make("p", { class: "asked", "data-testid": "user" }, question);
  const tools = make("ul", { class: "tools" });
  const bot = make("div", { class: "reply", "data-testid": "bot" });
  const mark = make("p", { class: "mark" });
  const actions = make("div", { class: "actions", role: "group", "aria-label": "This reply" });
  const sources = sourcesOf();
  const words = wordsOf(on.replica);
  const answer = make("div", { class: "answer" }, tools, bot, mark, sources.root, actions);
  const root = make("article", { class: "turn" }, asked, answer, words.root);
  const turn = { root, question, number: null, liked: null, state: "waiting" };
  let shown = [];

  const copy = button("copy", "Copy this reply", () => copyText(bot, copy));
  const thumbs = { up: button("up", "Good reply", () => rate("up")), down: button("down", "Bad reply", () => rate("down")) };
  const retry = button("retry", "Try again", () => on.retry(turn));
  retry.append(make("span", {}, "Try again"));
  actions.append(copy, thumbs.up, thumbs.down, retry);

  function rate(name) {
    const liked = name === "up";
    turn.like(turn.liked === liked ? null : liked);
    on.rate(turn, turn.liked === null ? "none" : name);
  }

  turn.like = (liked) => {
    turn.liked = liked;
    thumbs.up.setAttribute("aria-pressed", String(liked === true));
    thumbs.down.setAttribute("aria-pressed", String(liked === false));
  };

  turn.become = (state) => {
    turn.state = root.dataset.state = state;
    bot.setAttribute("aria-busy", String(isBusy(state)));
    mark.textContent = MARKS[state] || "";
    mark.hidden = !MARKS[state];
    copy.hidden = !bot.textContent;
    thumbs.up.hidden = thumbs.down.hidden = turn.number === null || !bot.textContent || state === "failed";
  };

  // Only the blocks that changed are drawn: the last one or two, while a reply is written.
  turn.show = ({ number, blocks, tools: lines, state, liked, sources: labels = [], words: written }, behind = {}) => {
    turn.number = number;
    blocks.forEach((html, index) => {
      if (shown[index] === html) return;
      const block = make("div");
      block.innerHTML = html; // rendered by the server, which lets none of the model's HTML through
      if (bot.children[index]) bot.children[index].replaceWith(block);
      else bot.append(block);
    });
    while (bot.children.length > blocks.length) bot.lastChild.remove();
    shown = blocks;
    tools.replaceChildren(...lines.map((line) => make("li", { class: line.state }, line.text)));
    sources.show(labels, behind);
    if (written) words.show(written);
    if (liked !== undefined) turn.like(liked);
    turn.become(state);
  };

  // What the owner wrote after this turn. Returns the blocks that are new.
  turn.write = words.show;

  turn.like(null);
  turn.become("waiting");
  return turn;
}

function button(icon, label, press) {
  const node = make("button", { type: "button", class: icon, "aria-label": label, title: label });
  node.innerHTML = drawing(icon);
  node.addEventListener("click", press);
  return node;
}

const drawing = (icon) => `<svg viewBox="0 0 24 24" aria-hidden="true">${ICONS[icon]}</svg>`;

async function copyText(bot, node) {
  try {
    await navigator.clipboard.writeText(bot.innerText);
  } catch { // not allowed in a foreign frame or without https
    const selection = getSelection();
    selection.selectAllChildren(bot);
    document.execCommand("copy");
    selection.removeAllRanges();
  }
  node.innerHTML = drawing("copied");
  node.setAttribute("aria-label", "Copied");
  setTimeout(() => {
    node.innerHTML = drawing("copy");
    node.setAttribute("aria-label", "Copy this reply");
  }, COPIED_MS);
}
