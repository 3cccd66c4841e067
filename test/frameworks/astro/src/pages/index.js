import { decisionOf } from "@floodgate/fetch";

export const GET = ({ request }) => Response.json({ remaining: decisionOf(request)?.remaining });
