import { h } from "@floodgate/pages/dom";

/** Asks before something is done. Cancel has the focus, Escape cancels, and the focus returns to where it was. */
export function confirm(question: {
  readonly title: string;
  readonly text: readonly (Node | string)[];
  readonly yes: string;
}): Promise<boolean> {
  const cancel = h("button", { type: "submit", value: "no", autofocus: true }, "Cancel");
  const dialog = h(
    "dialog",
    { "aria-labelledby": "confirm-title", "aria-describedby": "confirm-text" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "confirm-title" }, question.title),
      h("p", { id: "confirm-text" }, ...question.text),
      h("div", { class: "buttons" }, cancel, h("button", { type: "submit", value: "yes", class: "danger" }, question.yes)),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}
