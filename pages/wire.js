// The way to the server: Gradio's parts inside #wire. Fields are written, buttons are pressed.

const CONVERSATION_KEY = "replica.conversation";
const DRAFT_KEY = "replica.draft";
const FETCH_MS = 10000;
const LINE_SEPARATOR = "\u2028"; // stands for a line break: a one-line field drops real ones

export const find = (selector, root = document) => root.querySelector(selector);

let conversation = ""; // its id, kept in the browser where that may be, else for this visit

export const hasConversation = () => conversation !== "";

export function remember(id) {
  conversation = id;
  store(() => keep(localStorage, CONVERSATION_KEY, id));
}

export function recall() {
  conversation = store(() => localStorage.getItem(CONVERSATION_KEY)) || "";
}

// What the server says under an address of its own. Nothing, if the visitor began another conversation meanwhile.
export async function fetched(path) {
  const asked = conversation;
  const headers = asked ? { "X-Conversation": asked } : {};
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(FETCH_MS) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  const told = await answer.json();
  return asked === conversation ? told : null;
}

export const keepDraft = (text) => store(() => keep(sessionStorage, DRAFT_KEY, text));

export const takeDraft = () => store(() => sessionStorage.getItem(DRAFT_KEY)) || "";

function keep(storage, key, value) {
  if (value) storage.setItem(key, value);
  else storage.removeItem(key);
}

function store(use) {
  try {
    return use();
  } catch { // storage is blocked, as in a foreign frame
    return null;
  }
}

export function write(field, text) {
  const input = find(`#${field} input`);
  input.value = text.replaceAll("\n", LINE_SEPARATOR);
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

export function press(button) {
  write("conversation", conversation);
  find(`#${button}`).click();
}

const isDrawn = () =>
  ["#page", "#message textarea", "#told", "#conversation input"].every((selector) => find(selector));

// Gradio draws its parts after this script is loaded, one by one: somebody may write and press Enter before all are
// there. `start` is told so.
export function whenDrawn(start) {
  let eager = false;
  const onKey = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.closest?.("#message")) return;
    event.preventDefault();
    event.stopPropagation();
    eager = true;
  };
  addEventListener("keydown", onKey, true);
  const drawing = new MutationObserver(() => {
    if (!isDrawn()) return;
    drawing.disconnect();
    removeEventListener("keydown", onKey, true);
    start(eager);
  });
  drawing.observe(document.documentElement, { subtree: true, childList: true });
}
