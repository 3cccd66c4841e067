/** A package is published without the condition that leads the tests of this repository to its sources. */
export const hooks = {
  beforePacking(manifest) {
    for (const target of Object.values(manifest.exports)) delete target["@floodgate/source"];
    return manifest;
  },
};
