// A relay to Telegram's Bot API for hosts that block it, as a Cloudflare Worker.
// It passes on the methods of one bot, the one whose number is in BOT_ID, and nothing else.

const TELEGRAM = "https://api.telegram.org";
const METHOD = /^\/bot(\d+):[\w-]{20,}\/[A-Za-z]+$/;
const LARGEST = 1_000_000; // bytes

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const bot = METHOD.exec(pathname)?.[1];
    if (request.method !== "POST" || !bot || bot !== env.BOT_ID) {
      return refusal(404, "Not Found");
    }
    const body = await request.arrayBuffer();
    if (body.byteLength > LARGEST) {
      return refusal(413, "Request Entity Too Large");
    }
    const answer = await fetch((env.TELEGRAM ?? TELEGRAM) + pathname, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
      redirect: "manual",
    });
    return new Response(answer.body, { status: answer.status, headers: { "Content-Type": "application/json" } });
  },
};

function refusal(error_code, description) {
  return Response.json({ ok: false, error_code, description }, { status: error_code });
}
