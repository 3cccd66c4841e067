import type { RedisServer } from "./redis-server.js";

/** A node, as seen by another node. */
export interface NodeView {
  readonly id: string;
  readonly port: number;
  /** The id of a replica's master; `-` for a master. */
  readonly masterId: string;
  /** Whether the node is neither failed, nor suspected, nor in handshake. */
  readonly sound: boolean;
  /** The first and last slot of each range that the node serves. */
  readonly slots: readonly (readonly [first: number, last: number])[];
}

/** The Cluster as one of its nodes currently sees it (CLUSTER NODES). */
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
    // Slots in migration are in brackets.
    slots: ranges.filter((range) => !range.startsWith("[")).map(slotRange),
  };
}

function slotRange(range: string): [number, number] {
  const [first = "", last = first] = range.split("-");
  return [Number(first), Number(last)];
}

/**
 * The node that serves a slot.
 * @throws Error if no node does.
 */
export function masterIn(view: readonly NodeView[], slot: number): NodeView {
  const master = view.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last));
  if (master === undefined) throw new Error(`Nobody serves slot ${slot}.`);
  return master;
}
