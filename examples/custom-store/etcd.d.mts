import type { DatabaseDriver } from "@floodgate/store-database";

/** A driver for etcd 3.4 and later, over its JSON gateway. `url` is that of a member: `"http://127.0.0.1:2379"`. */
export function etcd(url: string): DatabaseDriver;
