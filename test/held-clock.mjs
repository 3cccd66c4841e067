// For `node --import`: the clock stands still.
const nowMs = Date.now();
Date.now = () => nowMs;
