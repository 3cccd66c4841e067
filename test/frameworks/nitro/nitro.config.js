export default {
  preset: "node-server",
  // Nitro copies another file of a package than the one that Node imports.
  noExternals: true,
};
