// The place in line, in words.

const SHOW_AFTER_MS = 600; // a place that is over sooner is not worth a word
const PLACES = ["next", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

// `say` shows a sentence, and `isSaying` tells whether there is one now.
export function lineOf(say, isSaying) {
  let timer = 0;
  let sentence = "";
  return {
    tell(place) { // none: it is not known
      if (!place) return;
      sentence = `You are ${PLACES[place - 1] || `number ${place}`} in line. I will answer as soon as I can.`;
      if (isSaying()) say(sentence);
      else timer ||= setTimeout(() => say(sentence), SHOW_AFTER_MS);
    },
    leave() {
      clearTimeout(timer);
      timer = 0;
      say("");
    },
  };
}
