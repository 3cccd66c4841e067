export default { preset: "node-server" };
