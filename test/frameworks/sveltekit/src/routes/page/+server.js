import { decisionOf } from "@floodgate/fetch";

export async function GET({ request, fetch }) {
  const { status } = await fetch("/");
  return Response.json({ remaining: decisionOf(request)?.remaining, own: status });
}
