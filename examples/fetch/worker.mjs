import { createApp } from "./app.mjs";

export default createApp();
