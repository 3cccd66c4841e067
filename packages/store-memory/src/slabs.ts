import type { Cells } from "@floodgate/core/store";

/** Blocks a page holds at most, as a power of two: large enough to be few, small enough that a new page is no pause. */
const pageBits = 10;
const pageBlocks = 1 << pageBits;
/** Cells a page holds at most, unless one block has more: states of megabytes come one by one. */
const pageCells = 1 << 16;
/** Cells from which on widths are rounded up to powers of two, so that there are few slabs however states vary. */
const exactWidths = 8;
/** Slabs that a handle can name, as a power of two: widths 0 to 8, then a power of two each. */
const slabBits = 6;
const slabCount = 1 << slabBits;

/**
 * Blocks of one width in pages that never move: growing copies nothing. Free blocks are chained through their first cell.
 * A handle names a block: its slab, its page, its place there. It stays below 2^30 (a Map holds 2^24 keys at most), where
 * V8 computes with whole numbers as such.
 */
class Slab {
  readonly width: number;
  readonly #index: number;
  readonly #pages: Cells[] = [];
  readonly #blocks: number;
  /** Blocks of the newest page that have been handed out. */
  #used: number;
  /** The handle of the first free block. */
  #free = -1;

  constructor(width: number, index: number) {
    this.width = width;
    this.#index = index;
    this.#blocks = Math.max(1, Math.min(pageBlocks, Math.floor(pageCells / width)));
    this.#used = this.#blocks;
  }

  /** The array that a block lies in. */
  cells(handle: number): Cells {
    return this.#pages[handle >>> (slabBits + pageBits)] as Cells;
  }

  /** Where in that array it begins. */
  at(handle: number): number {
    return ((handle >>> slabBits) & (pageBlocks - 1)) * this.width;
  }

  allocate(): number {
    if (this.#free >= 0) {
      const handle = this.#free;
      const cells = this.cells(handle);
      const at = this.at(handle);
      this.#free = cells[at] as number;
      cells[at] = 0;
      return handle;
    }
    if (this.#used === this.#blocks) {
      this.#pages.push(new Float64Array(this.#blocks * this.width));
      this.#used = 0;
    }
    return ((((this.#pages.length - 1) << pageBits) | this.#used++) << slabBits) | this.#index;
  }

  free(handle: number): void {
    const cells = this.cells(handle);
    const at = this.at(handle);
    cells.fill(0, at, at + this.width);
    cells[at] = this.#free;
    this.#free = handle;
  }
}

/** The states of all keys, in flat arrays. */
export class Slabs {
  readonly #slabs: (Slab | undefined)[] = Array.from({ length: slabCount }, () => undefined);

  /** The handle of a block of zeros for at least `size` cells. */
  allocate(size: number): number {
    const index = size <= exactWidths ? size : exactWidths + Math.ceil(Math.log2(size)) - 3;
    const width = size <= exactWidths ? size : 2 ** (index - exactWidths + 3);
    let slab = this.#slabs[index];
    if (slab === undefined) this.#slabs[index] = slab = new Slab(width, index);
    return slab.allocate();
  }

  /** The slab of a handle, which knows where its block lies. */
  slab(handle: number): Slab {
    return this.#slabs[handle & (slabCount - 1)] as Slab;
  }

  cells(handle: number): Cells {
    return this.slab(handle).cells(handle);
  }

  at(handle: number): number {
    return this.slab(handle).at(handle);
  }

  free(handle: number): void {
    this.slab(handle).free(handle);
  }
}
