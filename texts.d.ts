// Files that a package carries in its JavaScript, as texts: see tools/bundle.
declare module "*.lua" {
  const text: string;
  export default text;
}
declare module "*.html" {
  const text: string;
  export default text;
}
