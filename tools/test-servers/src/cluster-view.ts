import type { RedisServer } from "./redis-server.js";

/** A node as another one sees it. */
export interface NodeView {
  readonly id: string;
  readonly port: number;
  /** Of a replica: the id of its master; else `-`. */
  readonly masterId: string;
  /** Neither failed, nor feared to have, nor still being met. */
  readonly sound: boolean;
  /** The first and last slot of each range that it serves. */
  readonly slots: readonly (readonly [first: number, last: number])[];
}

/** The Cluster as one of its nodes sees it now (CLUSTER NODES). */
export async function viewOf(node: RedisServer): Promise<NodeView[]> {
  const answer = String(await node.command("CLUSTER", "NODES"));
  return answer.trim().split("\n").map(nodeView);
}

/** A line reads: id address flags master ping pong epoch link slots... */
function nodeView(line: string): NodeView {
  const [id = "", address = "", flags = "", masterId = "", , , , , ...ranges] = line.split(" ");
  return {
    id,
    port: Number(/:(\d+)@/.exec(address)?.[1]),
    masterId,
    sound: !/fail|handshake|noaddr/.test(flags),
    // A slot that is on its way from or to another node stands in brackets.
    slots: ranges.filter((range) => !range.startsWith("[")).map(slotRange),
  };
}

function slotRange(range: string): [number, number] {
  const [first = "", last = first] = range.split("-");
  return [Number(first), Number(last)];
}

/**
 * The node that serves a slot.
 * @throws Error where nobody does.
 */
export function masterIn(view: readonly NodeView[], slot: number): NodeView {
  const master = view.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last));
  if (master === undefined) throw new Error(`Nobody serves slot ${slot}.`);
  return master;
}
