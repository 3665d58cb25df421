// The chat page: sends what the visitor writes, and draws what the server says (see talk.py), which is
// the label of Gradio's button #told.

import { focusBox, setBox } from "./box.js";
import { layOut } from "./layout.js";
import { lineOf } from "./line.js";
import { watchNews } from "./news.js";
import { pointTo, signOf, writeUnder } from "./owner.js";
import { isBusy, turnOf } from "./turn.js";
import { fetched, find, hasConversation, keepDraft, press, recall, remember, takeDraft, whenDrawn, write } from "./wire.js";

const SERVER_SILENT_MS = 5000;
const SETTLE_MS = 250; // time for a stopped reply to be written down before the next message
const NEAR_END_PX = 90;

const LOST = "That did not go through. Your message is back in the box; please try again.";
const BUSY = "Many messages are waiting for me. Yours is back in the box; please try again in a minute.";
const NO_CONNECTION = "The connection is lost. Please try again in a moment.";
const OPEN_AGAIN = "The chat is open again.";

let page, talk, log, fresh, notice, box, line, sign;
let turns = []; // as they stand in the log
let wake = () => {}; // asks for news at once
let newest = 0; // of what the owner wrote, the last that is here
let running = null; // {turn, text, begun, sent}: the turn that is being answered, and what was asked
let loading = null; // {turn, text, quiet, why, timer}: the history was asked for, and of what message it is to tell
let settled = Promise.resolve(); // of a stopped reply: Gradio and the server have let go of it
let letGo = () => {};
let following = true; // the reader is at the end, so new words scroll into view
let eager = false; // Enter was pressed before it was known what was said before: then the box is sent after that

// --- What a visitor does ---

const on = {
  ask: (question) => send(question),
  anew: () => newChat(),
  retry: (turn) => tryAgain(turn),
  rate: (turn, thumb) => {
    write("thumb", `${turn.number} ${thumb}`);
    press("rate");
  },
};

function sendBox() {
  const text = box.value;
  box.focus();
  if (running || !text.trim() || sign.stops()) return;
  const isTooLong = [...text].length > on.replica.longest; // the server would not read so much, nor say why
  if (isTooLong) say(on.replica.too_long);
  eager = Boolean(loading) && !isTooLong;
  if (eager || isTooLong) return;
  setBox(box, "");
  send(text);
}

function send(text) {
  if (running || sign.stops()) return;
  const turn = turnOf(text, on);
  draw([...turns, turn]);
  write("said", text);
  run(turn, text, "ask");
}

function tryAgain(turn) {
  if (running || sign.stops()) return;
  turn.show({ number: turn.number, blocks: [], tools: [], state: "waiting", liked: null });
  run(turn, "", "again");
}

async function run(turn, text, button) {
  const mine = { turn, text, begun: false, sent: false };
  running = mine;
  page.dataset.busy = "yes";
  log.setAttribute("aria-busy", "true");
  say("");
  scrollToEnd();
  await settled;
  if (running !== mine) return;
  press(button);
  await pause(SERVER_SILENT_MS);
  if (running === mine && !mine.sent) fail(mine); // Gradio sends nothing while it looks for its server
}

function end() {
  running = null;
  line.leave();
  page.dataset.busy = "no";
  log.setAttribute("aria-busy", "false"); // now a screen reader reads the whole answer
  focusBox(box);
  wake();
}

function stopped() {
  if (!running) return;
  const { turn, text, begun } = running;
  const gone = new Promise((resolve) => { letGo = resolve; });
  settled = Promise.race([gone, pause(SERVER_SILENT_MS)]).then(() => pause(SETTLE_MS));
  end();
  turn.become("stopped");
  if (!begun) settled.then(() => running || synchronise({ turn, text, quiet: true }));
}

function newChat() {
  if (running) find("#stop").click();
  remember("");
  forgetLoading();
  draw([]);
  say("");
  box.focus();
}

// --- What the server says ---

function receive() {
  const text = find("#told").textContent.trim();
  if (!text) return;
  const piece = JSON.parse(text);
  if (piece.history) showHistory(piece);
  else if (piece.refused) refuse(piece.refused);
  else if (piece.turn && running) {
    remember(piece.conversation);
    running.begun = true;
    line.leave();
    running.turn.show(piece.turn, piece.behind);
    if (following) scrollToEnd();
    if (!isBusy(piece.turn.state)) end();
  }
}

function refuse(sentence) {
  const unsure = loading;
  forgetLoading();
  const refused = running;
  if (refused) {
    end();
    if (refused.text) takeBack(refused);
    else synchronise({});
  } else if (unsure?.text) takeBack(unsure);
  say(sentence);
  sendEager();
}

// The message did not arrive: it leaves the conversation, and its words return to the box.
function takeBack({ turn, text }) {
  eager = false;
  if (turn) draw(turns.filter((other) => other !== turn));
  setBox(box, [text, box.value].filter(Boolean).join("\n"));
}

// Asks the server what was said. `text` is a message of which it is not known whether it arrived.
function synchronise({ turn = null, text = "", quiet = false, why = LOST }) {
  forgetLoading();
  const lost = (sentence) => {
    loading = null;
    if (text) takeBack({ turn, text });
    if (!quiet) say(sentence);
    sendEager();
  };
  if (!hasConversation()) {
    lost(why);
    return;
  }
  loading = { turn, text, quiet, why, timer: setTimeout(() => lost(NO_CONNECTION), SERVER_SILENT_MS) };
  press("load");
}

function forgetLoading() {
  clearTimeout(loading?.timer);
  loading = null;
}

function showHistory({ conversation, history, behind, words }) {
  if (!loading || running) return;
  const { text, quiet, why } = loading;
  forgetLoading();
  if (!conversation) remember("");
  draw(history.map((past) => {
    const turn = turnOf(past.question, on);
    turn.show(past, behind);
    return turn;
  }));
  newest = words;
  scrollToEnd();
  if (text && turns.at(-1)?.question !== text.trim()) {
    takeBack({ text });
    if (!quiet) say(why);
  }
  sendEager();
}

function draw(all) {
  turns.filter((turn) => !all.includes(turn)).forEach(({ root }) => root.remove());
  log.append(...all.filter((turn) => !turns.includes(turn)).map(({ root }) => root));
  turns = all;
  page.dataset.empty = all.length ? "no" : "yes";
  if (!all.length) newest = 0;
}

function sendEager() {
  if (eager) sendBox();
}

// --- What the owner does meanwhile ---

// Returns whether there was something new.
async function hear(news) {
  const turned = sign.hang(news.closed);
  if (turned) say(news.closed ? "" : OPEN_AGAIN);
  if (running || loading || news.words === newest) return turned;
  const told = await fetched("words");
  if (!told || running || loading) return turned;
  newest = news.words;
  const block = writeUnder(turns, told.words);
  if (block === undefined) synchronise({ quiet: true });
  if (!block) return true;
  if (following && turns.at(-1).root.contains(block)) block.scrollIntoView({ block: "nearest" });
  pointTo(block, fresh);
  return true;
}

// --- The place in line, and faults on the way: Gradio shows both in the status of a field. ---

function watchStatus() {
  const status = find("#conversation [data-testid=status-tracker]");
  const over = status?.classList.contains("hide");
  if (over) letGo();
  if (!running || !status) return;
  if (!running.sent) {
    running.sent = /\d/.test(status.textContent); // a new wait has begun; before it, this is the last one's status
    return;
  }
  if (find(".error", status)) fail(running);
  else if (over) ended(running);
  else line.tell(/queue: (\d+)/.exec(status.textContent)?.[1]);
}

function fail({ turn, text, begun }) {
  end();
  if (begun) turn.become("broken");
  const isFull = /busy/.test(find(".toast-wrap")?.textContent); // Gradio's word for a 503
  synchronise(begun ? {} : { turn, text, why: isFull ? BUSY : LOST });
}

// The server is done. If it never said how the reply ended, it is asked.
async function ended(mine) {
  await pause(SETTLE_MS);
  if (running === mine) fail(mine);
}

// --- The page ---

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function say(sentence) {
  if (notice.textContent !== sentence) notice.textContent = sentence; // the same words are not read out again
}

function scrollToEnd() {
  following = true;
  talk.scrollTop = talk.scrollHeight;
}

function onKey(event) {
  if (event.target !== box || event.isComposing) return;
  if (event.key === "Escape" && running) find("#stop").click();
  if (event.key !== "Enter" || event.shiftKey) return;
  event.preventDefault();
  event.stopPropagation(); // Gradio's own Enter has nothing to do here
  sendBox();
}

function start(isEager) {
  eager = isEager;
  ({ replica: on.replica, page, talk, log, fresh, notice, box, sign } = layOut(on));
  line = lineOf(say, () => notice.textContent !== "");
  sign = signOf(page, sign, find("#send"), on.replica.name);
  Object.assign(page.dataset, { empty: "yes", busy: "no", closed: "no" });
  page.addEventListener("keydown", onKey, true);
  find("#send").addEventListener("click", sendBox);
  find("#stop").addEventListener("click", stopped);
  talk.addEventListener("scroll", () => {
    following = talk.scrollHeight - talk.scrollTop - talk.clientHeight < NEAR_END_PX;
  }, { passive: true });
  // What grows under the reader's eyes, or takes room from below, must not hide the end that they are at.
  const growing = new ResizeObserver(() => following && scrollToEnd());
  growing.observe(talk);
  growing.observe(log);
  const changes = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["class"] };
  new MutationObserver(receive).observe(find("#told"), changes);
  new MutationObserver(watchStatus).observe(find("#conversation"), changes);

  // Gradio loads the page anew after its server was away, so words that did not arrive outlive a reload.
  addEventListener("pagehide", () => {
    const unsure = running && !running.begun ? running.text : loading?.text;
    keepDraft([unsure, box.value].filter(Boolean).join("\n"));
  });
  recall();
  const draft = takeDraft();
  synchronise({ text: draft, quiet: Boolean(draft) || !hasConversation() });
  wake = watchNews(() => running !== null, hear);
  if (window.parent === window) focusBox(box); // in a frame it would scroll the page around it
}

whenDrawn(start);
