import { createApp } from "./app.mjs";

const server = createApp().listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`Listening on http://localhost:${server.address().port}`);
});
