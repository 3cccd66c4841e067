/** A Lua file, as a text. */
declare module "*.lua" {
  const text: string;
  export default text;
}
