import { decisionContext } from "./decision.js";

export const loader = ({ context }) => Response.json({ remaining: context.get(decisionContext).remaining });
