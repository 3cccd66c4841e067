import { h } from "./dom.js";

/** Colours of the stylesheets, for what is drawn on a canvas. */
export interface Theme {
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
  readonly surface: string;
  /** Below a line of `limited`. */
  readonly limitedTint: string;
  fillOf(result: string): string | CanvasPattern;
  inkOf(result: string): string;
}

type Draw = (context: CanvasRenderingContext2D, size: number) => void;

const dots: Draw = (context, size) => {
  context.beginPath();
  context.arc(size / 2, size / 2, size / 6, 0, 7);
  context.fill();
};
const upright: Draw = (context, size) => context.fillRect(0, 0, size / 6, size);
const slanted: Draw = (context, size) => {
  context.lineWidth = size / 6;
  context.beginPath();
  for (const shift of [-size, 0, size]) {
    context.moveTo(shift - 1, size + 1);
    context.lineTo(shift + size + 1, -1);
  }
  context.stroke();
};

/** One pattern for each result, so that colour is never all that tells two apart. `swatch` in charts.css draws the same ones. */
const patterns: Readonly<Record<string, Draw>> = {
  delayed: dots,
  "fallback-allowed": dots,
  "failed-open": upright,
  banned: upright,
  "failed-closed": (context, size) => context.fillRect(0, 0, size, size / 6),
  "missing-key": (context, size) => {
    context.fillRect(0, 0, size / 6, size);
    context.fillRect(0, 0, size, size / 6);
  },
  "ambiguous-path": dots,
  "shadow-limited": slanted,
  "fallback-limited": slanted,
};

/** A patch in the colour and pattern of a result, for legends. */
export function swatch(result: string): HTMLElement {
  const element = h("span", { class: `swatch ${result}`, "aria-hidden": "true" });
  element.style.setProperty("--fill", `var(--${result})`);
  element.style.setProperty("--ink", `var(--${result}-ink)`);
  return element;
}

/** Reads the theme that is in force. Charts read it anew when the person switches between light and dark. */
export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const made = new Map<string, string | CanvasPattern>();
  return {
    text: colour("text"),
    quiet: colour("quiet"),
    line: colour("line"),
    surface: colour("surface"),
    limitedTint: colour("limited-tint"),
    inkOf: (result) => colour(`${result}-ink`),
    fillOf: (result) => {
      const known = made.get(result);
      if (known !== undefined) return known;
      const fill = patternOf(colour(result), colour("surface"), patterns[result]);
      made.set(result, fill);
      return fill;
    },
  };
}

function patternOf(colour: string, mark: string, draw: Draw | undefined): string | CanvasPattern {
  if (draw === undefined) return colour;
  const size = Math.round(7 * devicePixelRatio);
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const context = tile.getContext("2d");
  if (context === null) return colour;
  context.fillStyle = colour;
  context.fillRect(0, 0, size, size);
  context.fillStyle = context.strokeStyle = mark;
  context.globalAlpha = 0.6;
  draw(context, size);
  return context.createPattern(tile, "repeat") ?? colour;
}

/** Calls back when colours or the pixel ratio change: a canvas keeps the old ones otherwise. Paper has colours of its own. */
export function onThemeChange(listener: () => void): void {
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"])
    matchMedia(query).addEventListener("change", listener);
  const watchRatio = (): void =>
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener(
      "change",
      () => {
        listener();
        watchRatio();
      },
      { once: true },
    );
  watchRatio();
}
