// biome-ignore-all lint/a11y/noRedundantRoles: the rows of some tables are small grids on a phone, which are no table to CSS
import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { visible } from "../format.js";

/** A name, key, path or reason that somebody else chose: isolated, so that a mark that turns the direction of text turns nothing around it. */
export const foreign = (text: string, look = ""): VNode => <bdi class={`foreign ${look}`.trim()}>{visible(text)}</bdi>;

export const path = (look: string, d: string): VNode => <path class={look} d={d} />;

/** A figure of a list: its name, the figure, and what it is of. */
export const figure = (name: string, value: string, note = "", look = ""): VNode => (
  <div class="figure">
    <dt class="small quiet">{name}</dt>
    <dd class="row">
      <span class={`value ${look}`}>{value}</span>
      <span class="note quiet">{note}</span>
    </dd>
  </div>
);

interface CardProps {
  readonly id: string;
  readonly title: string;
  readonly look?: string;
  /** What stands beside the title. */
  readonly notes?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A part of a page with a heading, which names it for screen readers too. */
export const Card = ({ id, title, look = "", notes, children }: CardProps): VNode => (
  <section id={id} class={`card ${look}`} aria-labelledby={`${id}-title`}>
    <header class="row">
      <h2 id={`${id}-title`} tabIndex={-1}>
        {title}
      </h2>
      {notes}
    </header>
    {children}
  </section>
);

interface TableProps {
  readonly caption: string;
  readonly look?: string;
  readonly columns: readonly { readonly name: string; readonly look?: string }[];
  /** What each row is about, then its other cells. */
  readonly rows: readonly (readonly ComponentChildren[])[];
  /** Rows with the same key are the same row, wherever it stands. */
  readonly keys?: readonly string[];
}

export const Table = ({ caption, look, columns, rows, keys }: TableProps): VNode => (
  <table class={look} role="table">
    <caption class="hidden-text">{caption}</caption>
    <thead role="rowgroup">
      <tr role="row">
        {columns.map((column) => (
          <th scope="col" role="columnheader" class={column.look}>
            {column.name}
          </th>
        ))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      {rows.map(([about, ...cells], i) => (
        <tr key={keys?.[i]} role="row">
          <th scope="row" role="rowheader">
            {about}
          </th>
          {columns.slice(1).map((column, j) => (
            <td role="cell" class={column.look} data-name={column.name}>
              {cells[j]}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);

interface FiguresTableProps {
  readonly caption: string;
  readonly summary?: string;
  readonly hidden?: boolean;
  /** What the figures are of. They are written again when it is another. */
  readonly of: unknown;
  readonly write: () => { readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] };
}

/** The figures of a chart as a table, for people who do not see the chart, or want to copy them. It is written only while it is open. */
export function FiguresTable({ caption, summary = "Show as a table", hidden = false, of, write }: FiguresTableProps): VNode {
  const [isOpen, setOpen] = useState(false);
  const table = useMemo(() => {
    if (!isOpen) return undefined;
    const { columns, rows } = write();
    return <Table caption={caption} columns={columns.map((name, i) => ({ name, look: i > 0 ? "number" : "" }))} rows={rows} />;
  }, [isOpen, of]);
  return (
    <details hidden={hidden} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{summary}</summary>
      <Scroll label={caption}>{table}</Scroll>
    </details>
  );
}

/** What is wider or higher than its place. The keyboard reaches it, to scroll it. */
export const Scroll = ({ label, children }: { readonly label: string; readonly children: ComponentChildren }): VNode => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
  // biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields
  <div class="scroll" tabIndex={0} role="group" aria-label={label}>
    {children}
  </div>
);

/** The width of an element, which is 0 until it is in the page. */
export function useWidth(): readonly [width: number, ref: { current: HTMLDivElement | null }] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(ref.current?.clientWidth ?? 0));
    observer.observe(ref.current as Element);
    return () => observer.disconnect();
  }, []);
  return [width, ref];
}
