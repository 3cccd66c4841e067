import { clientClosedRequest } from "@floodgate/core/adapter";

/**
 * A `refundWhen` that refunds the statuses of a list such as `5xx,404`. `4xx` does not stand for a client that left: else each client could
 * leave before the end of the response, and never pay.
 */
export function refundsStatus(list: string): (status: number) => boolean {
  const statuses = list.split(",").map((item) => item.trim());
  return (status) =>
    statuses.includes(`${status}`) || (status !== clientClosedRequest && statuses.includes(`${Math.floor(status / 100)}xx`));
}
