import { vi } from "vitest";

// A file of tests begins with real timers and modules of its own, though it shares its thread with the files before it: a module knows what it
// has warned of, who listens, and which limits exist.
vi.useRealTimers();
vi.resetModules();
