// The message box: Gradio's own, which is told of each change.

export function setBox(box, text) {
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

// A phone's keyboard would cover the answer, so only a mouse or a trackpad gets the focus back.
export function focusBox(box) {
  const at = document.activeElement;
  const free = !at || at === document.body || at.closest("#composer, .actions");
  if (free && matchMedia("(pointer: fine)").matches) box.focus({ preventScroll: true });
}
