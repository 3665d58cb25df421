// Asks the server for news while the page is looked at: the owner may have written, or closed the chat.

import { fetched } from "./wire.js";

const SOON_MS = 4000;
const LATER_MS = 30000; // after a while without anything
const QUIET_MS = 600000;
const LONGEST_MS = 120000; // after one failure upon another

// `isBusy` tells that this is no moment for news, and `tell` gets them. Returns what to call when something happened:
// it asks at once, and often from then on.
export function watchNews(isBusy, tell) {
  let timer = 0;
  let failures = 0;
  let asking = false;
  let lively = Date.now();

  async function ask() {
    clearTimeout(timer);
    if (asking || document.hidden || isBusy()) return; // whatever ends these wakes it
    asking = true;
    try {
      const news = await fetched("news");
      if (news && await tell(news)) lively = Date.now();
      failures = 0;
    } catch {
      failures += 1;
    }
    asking = false;
    const pause = Date.now() - lively < QUIET_MS ? SOON_MS : LATER_MS;
    const spread = 0.9 + Math.random() / 5; // pages that lost the server together do not come back together
    timer = setTimeout(ask, Math.min(pause * 2 ** failures, LONGEST_MS) * spread);
  }

  function wake() {
    lively = Date.now();
    ask();
  }
  document.addEventListener("visibilitychange", wake);
  wake();
  return wake;
}
