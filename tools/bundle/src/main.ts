import { bundlePackage } from "./bundle.js";
import { copyDocs } from "./docs.js";
import { publishedPackages } from "./packages.js";

// Writes the JavaScript of all published packages, or of those named: `node tools/bundle/dist/main.js core express`.

const wanted = process.argv.slice(2);
const found = publishedPackages().filter(({ folder }) => wanted.length === 0 || wanted.includes(folder));
copyDocs();
await Promise.all(found.map(bundlePackage));
