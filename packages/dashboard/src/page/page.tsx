import { timeZone } from "@floodgate/pages/format";
import { foreign } from "@floodgate/pages/view/elements";
import { Patterns } from "@floodgate/pages/view/fills";
import type { ComponentChildren, VNode } from "preact";
import { useErrorBoundary, useState } from "preact/hooks";
import type { TopKey } from "../contract.js";
import type { Model } from "./model.js";
import { Answer } from "./sections/answer.js";
import { Bursts } from "./sections/bursts.js";
import { Lookup } from "./sections/lookup.js";
import { AskRequest } from "./sections/request.js";
import { Rules } from "./sections/rules.js";
import { Stores } from "./sections/stores.js";
import { TopBar } from "./sections/top-bar.js";
import { byRejections, byRequests, TopKeys } from "./sections/top-keys.js";
import { Traffic } from "./sections/traffic.js";

export function Page({ model }: { readonly model: Model }): VNode {
  const { figures, trouble } = model;
  const [opened, setOpened] = useState<TopKey>();
  // The same key may be opened again.
  const open = (key: TopKey): void => setOpened({ ...key });
  const sections = figures && [
    <Answer figures={figures} />,
    <Lookup figures={figures} opened={opened} />,
    <AskRequest />,
    <Traffic figures={figures} />,
    <Rules figures={figures} />,
    <Bursts figures={figures} />,
    <Stores figures={figures} />,
    <TopKeys figures={figures} words={byRequests} onOpen={open} />,
    <TopKeys figures={figures} words={byRejections} onOpen={open} />,
  ];
  return (
    <>
      <a class="skip" href="#main">
        Skip to the figures
      </a>
      <TopBar model={model} />
      <main id="main" tabIndex={-1}>
        <p class="notice bad" role="alert" hidden={trouble === undefined}>
          {trouble !== undefined && ["The figures could not be read. ", foreign(trouble)]}
        </p>
        {sections?.map((section) => (
          <Guarded>{section}</Guarded>
        ))}
      </main>
      <footer>
        <p>Times are local: {timeZone()}.</p>
      </footer>
      <Patterns />
    </>
  );
}

/** A section that cannot be drawn must not stop the others. */
function Guarded({ children }: { readonly children: ComponentChildren }): ComponentChildren {
  const [error] = useErrorBoundary((thrown) => reportError(thrown));
  return error === undefined ? children : <p class="notice bad">This part of the page cannot be shown. Reload the page.</p>;
}
