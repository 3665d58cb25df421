// Lays the page out around Gradio's message box: header, conversation, notices, footnote.

import { find } from "./wire.js";

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// `on` holds what the buttons do: `on.ask(question)` and `on.anew()`.
export function layOut(on) {
  const replica = JSON.parse(find("#replica").textContent);
  const page = find("#page");
  const picture = (size) => make("img", { src: replica.picture, alt: "", width: size, height: size });

  const who = make("div", { id: "who" }, make("h1", {}, replica.name));
  if (replica.line) who.append(make("p", {}, replica.line));
  const anew = make("button", { type: "button", id: "new" }, "New chat");
  anew.addEventListener("click", on.anew);

  const portrait = picture("96");
  portrait.id = "portrait";
  const greeting = make("p", { id: "greeting" }, `Hello, I am the digital replica of ${replica.name}. ` +
    "Ask me about my life and my work. What I do not know I will say, and pass your question on.");
  const log = make("div", { id: "log", role: "log", "aria-live": "polite", "aria-label": "Conversation" });
  const questions = make("div", { id: "questions", role: "group", "aria-label": "Questions to begin with" });
  for (const question of replica.questions) {
    const chip = make("button", { type: "button" }, question);
    chip.addEventListener("click", () => on.ask(question));
    questions.append(chip);
  }
  // It takes the focus so that the arrow keys scroll it.
  const talk = make("div", { id: "talk", role: "region", tabindex: "0", "aria-label": "Chat" },
    make("div", { class: "column" }, portrait, greeting, log, questions));
  const notice = make("p", { id: "notice", role: "status" });
  const sign = make("div", { id: "sign", role: "status" });
  const fresh = make("button", { type: "button", id: "fresh" }, `${replica.name} wrote to you`);
  fresh.hidden = true;

  const header = make("header", { id: "header" }, make("div", { class: "column" }, picture("44"), who, anew));
  page.prepend(header, talk, fresh, sign, notice);
  page.append(make("p", { id: "footnote" }, "A digital replica: it answers from notes and can be wrong."));
  const box = find("#message textarea");
  box.setAttribute("aria-describedby", sign.id);
  return { replica, page, talk, log, fresh, sign, notice, box };
}
