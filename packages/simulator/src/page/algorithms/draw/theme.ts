/** The size of the picture of a state, in CSS pixels. */
export const pictureWidth = 168;
export const pictureHeight = 76;

/** The colours of the stylesheet, for what is drawn on a canvas. */
export interface Theme {
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
  readonly strong: string;
  /** What is behind the lanes. */
  readonly ground: string;
  readonly sunken: string;
  readonly accent: string;
  readonly soft: string;
  readonly allowed: string;
  readonly limited: string;
  readonly delayed: string;
  readonly font: string;
}

/** Reads the colours that are in force at an element. */
export function themeAt(element: Element): Theme {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    text: colour("text"),
    quiet: colour("quiet"),
    line: colour("line"),
    strong: colour("line-strong"),
    ground: colour("lane-ground"),
    sunken: colour("sunken"),
    accent: colour("lane-accent"),
    soft: colour("lane-soft"),
    allowed: colour("lane-allowed"),
    limited: colour("lane-limited"),
    delayed: colour("lane-delayed"),
    font: `500 11px ${style.fontFamily}`,
  };
}

/** Calls back when colours or the pixel ratio change, until the signal aborts. */
export function onThemeChange(listener: () => void, signal: AbortSignal): void {
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", listener, { signal });
  }
}

const fonts = new WeakMap<HTMLCanvasElement, string>();

/** A canvas that is as sharp as the screen. Its size is in CSS pixels. Returns undefined while it is not shown. */
export function prepared(canvas: HTMLCanvasElement, width: number, height: number, font: string): CanvasRenderingContext2D | undefined {
  const context = canvas.getContext("2d");
  if (context === null || width <= 0) return undefined;
  const ratio = devicePixelRatio;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    fonts.delete(canvas);
  }
  // Setting it makes the browser compute styles, each time.
  if (fonts.get(canvas) !== font) context.font = font;
  fonts.set(canvas, font);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.lineJoin = "round";
  context.lineCap = "butt";
  return context;
}
