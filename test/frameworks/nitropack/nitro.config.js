export default { preset: "node-server", compatibilityDate: "2026-01-01" };
