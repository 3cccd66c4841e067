import { reasonOf } from "@floodgate/core/adapter";

/** The message of anything that was thrown. Long ones are cut. */
export const textOf = (error: unknown): string => reasonOf(error).why.slice(0, 2000);
