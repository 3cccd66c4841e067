import type { Cells } from "@floodgate/core";

/** Blocks a page holds: large enough to be few, small enough that a new one is no pause. */
const pageBlocks = 1024;
/** Cells from which on widths are rounded up to powers of two, so that there are few slabs however states vary. */
const exactWidths = 8;
/** Slabs that a handle can name: widths 0 to 8, then a power of two each. */
const slabCount = 64;

/** Blocks of one width in pages that never move: growing copies nothing. Free blocks are chained through their first cell. */
class Slab {
  readonly width: number;
  readonly pages: Cells[] = [];
  #blocks = 0;
  #free = -1;

  constructor(width: number) {
    this.width = width;
  }

  allocate(): number {
    if (this.#free >= 0) {
      const block = this.#free;
      const cells = this.pages[Math.floor(block / pageBlocks)] as Cells;
      const at = (block % pageBlocks) * this.width;
      this.#free = cells[at] as number;
      cells[at] = 0;
      return block;
    }
    if (this.#blocks === this.pages.length * pageBlocks) this.pages.push(new Float64Array(pageBlocks * this.width));
    return this.#blocks++;
  }

  free(block: number): void {
    const cells = this.pages[Math.floor(block / pageBlocks)] as Cells;
    const at = (block % pageBlocks) * this.width;
    cells.fill(0, at, at + this.width);
    cells[at] = this.#free;
    this.#free = block;
  }
}

/** The states of all keys, in flat arrays. A handle is a number that names a block: its slab and its place in it. */
export class Slabs {
  readonly #slabs: (Slab | undefined)[] = Array.from({ length: slabCount }, () => undefined);

  /** A block of zeros for at least `size` cells. */
  allocate(size: number): number {
    const index = size <= exactWidths ? size : exactWidths + Math.ceil(Math.log2(size)) - 3;
    const width = size <= exactWidths ? size : 2 ** (index - exactWidths + 3);
    let slab = this.#slabs[index];
    if (slab === undefined) this.#slabs[index] = slab = new Slab(width);
    return slab.allocate() * slabCount + index;
  }

  free(handle: number): void {
    this.#slabOf(handle).free(Math.floor(handle / slabCount));
  }

  width(handle: number): number {
    return this.#slabOf(handle).width;
  }

  /** The array that a block lies in. */
  cells(handle: number): Cells {
    return this.#slabOf(handle).pages[Math.floor(handle / slabCount / pageBlocks)] as Cells;
  }

  /** Where in that array it begins. */
  at(handle: number): number {
    return (Math.floor(handle / slabCount) % pageBlocks) * this.#slabOf(handle).width;
  }

  #slabOf(handle: number): Slab {
    return this.#slabs[handle % slabCount] as Slab;
  }
}
