import { serve } from "./lib/child.mjs";
import { clientKey, subjects } from "./lib/subjects.mjs";

const [name, keys] = process.argv.slice(2);

function used() {
  for (let i = 0; i < 3; i++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return { heap: heapUsed, outside: external };
}

let kept;

serve(async () => {
  clientKey(0);
  const before = used();
  const decide = subjects[name].make({ limit: 100, maxKeys: Number(keys) });
  for (let i = 0; i < Number(keys); i++) await decide(clientKey(i));
  const after = used();
  kept = decide;
  if ((await kept(clientKey(0))) === false) throw new Error(`${name} denied a key on its second request`);
  return { heap: after.heap - before.heap, outside: after.outside - before.outside };
});
